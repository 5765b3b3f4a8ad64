"""`struct`: numbers as bytes."""

import _host

error = ValueError
_SIZES = {"b": 1, "B": 1, "?": 1, "h": 2, "H": 2, "i": 4, "I": 4, "l": 4, "L": 4, "q": 8, "Q": 8, "f": 4, "d": 8, "e": 2, "x": 1, "s": 1, "c": 1}


def _parse(format):
    order, native = "little", True
    if format[:1] in ("<", ">", "=", "!", "@"):
        order = "big" if format[0] in (">", "!") else "little"
        native = format[0] == "@"
        format = format[1:]
    fields, count = [], ""
    for letter in format:
        if letter.isdigit():
            count += letter
        elif letter.isspace():
            continue
        elif letter not in _SIZES:
            raise error("bad char in struct format")
        else:
            size = 8 if native and letter in "lL" else _SIZES[letter]
            number = int(count or 1)
            if letter == "s":
                fields.append((letter, number))
            else:
                fields += [(letter, size)] * number
            count = ""
    if not native:
        return order, fields, [0] * len(fields)
    at, gaps = 0, []
    for letter, size in fields:
        align = 1 if letter in "sxc" else size
        gap = -at % align
        gaps.append(gap)
        at += gap + size
    return order, fields, gaps


def calcsize(format):
    _, fields, gaps = _parse(format)
    return sum(size for _, size in fields) + sum(gaps)


def pack(format, *values):
    order, fields, gaps = _parse(format)
    needed = sum(letter != "x" for letter, _ in fields)
    if needed != len(values):
        raise error(f"pack expected {needed} items for packing (got {len(values)})")
    data, values = b"", iter(values)
    for (letter, size), gap in zip(fields, gaps):
        data += bytes(gap)
        if letter == "x":
            data += b"\0"
            continue
        value = next(values)
        if letter in "fde":
            data += _host.float_bits(float(value), size).to_bytes(size, order)
        elif letter == "s":
            data += value[:size].ljust(size, b"\0")
        elif letter == "c":
            data += value
        else:
            try:
                data += int(value).to_bytes(size, order, signed=letter.islower() and letter != "?")
            except OverflowError:
                raise error(f"'{letter}' format requires a number that fits") from None
    return data


def unpack(format, data):
    order, fields, gaps = _parse(format)
    size = calcsize(format)
    if len(data) != size:
        raise error(f"unpack requires a buffer of {size} bytes")
    at, values = 0, []
    for (letter, size), gap in zip(fields, gaps):
        at += gap
        part = bytes(data[at : at + size])
        at += size
        if letter in "fde":
            values.append(_host.float_of_bits(int.from_bytes(part, order), size))
        elif letter in "sc":
            values.append(part)
        elif letter == "?":
            values.append(part != b"\0")
        elif letter != "x":
            values.append(int.from_bytes(part, order, signed=letter.islower()))
    return tuple(values)
