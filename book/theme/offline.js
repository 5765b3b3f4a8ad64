// Keeps pages that were read, so that they can be read without a network. It is a service worker, and the builder puts it at the
// root of the book with the version of the book in place of the word below.

"use strict";

const CACHE = "to-device-VERSION";
const OURS = "to-device-";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", event => event.waitUntil((async () => {
  for (const name of await caches.keys()) {
    if (name.startsWith(OURS) && name !== CACHE) await caches.delete(name);
  }
  await clients.claim();
})()));

// A page tells what it has loaded, or that all of the book is to be kept; where it sends a port, it is told how that went.
self.addEventListener("message", event => {
  const { keep } = event.data;
  const tell = kept => event.ports[0]?.postMessage({ kept });
  const done = (async () => {
    const cache = await caches.open(CACHE);
    for (const url of keep) {
      if (await cache.match(url)) continue;
      const answer = await fetch(url);
      if (answer.ok) await cache.put(url, answer);
    }
  })();
  event.waitUntil(done.then(() => tell(keep.length), () => tell(0)));
});

// The network first, since pages change; what a name with a hash stands for never does.
self.addEventListener("fetch", event => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin || url.pathname.includes("/__")) return;
  const isForGood = /-[0-9a-f]{8}\.\w+$/.test(url.pathname);
  event.respondWith((async () => {
    const cache = await caches.open(CACHE);
    const kept = () => cache.match(request, { ignoreSearch: true });
    if (isForGood) {
      const found = await kept();
      if (found) return found;
    }
    try {
      const answer = await fetch(request);
      if (answer.ok && answer.type === "basic") await cache.put(request, answer.clone());
      return answer;
    } catch (error) {
      const found = await kept();
      if (found) return found;
      throw error;
    }
  })());
});
