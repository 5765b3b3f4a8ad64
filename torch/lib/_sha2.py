def sha512(data=b""):
    raise NotImplementedError("random.seed of a text is not here; a number is")


sha256 = sha224 = sha384 = sha512
