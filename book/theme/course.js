// mdBook turns the page on the left and right arrow. Among the choices of a question these keys choose.
for (const questions of document.querySelectorAll(".questions")) {
  questions.addEventListener("keydown", event => event.stopPropagation());
}
