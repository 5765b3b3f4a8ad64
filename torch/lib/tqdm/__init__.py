"""`tqdm`: goes through what it is given, and prints no bar."""


class tqdm:
    def __init__(self, iterable=None, desc=None, total=None, **options):
        self.iterable, self.total, self.n = iterable, total, 0

    def __iter__(self):
        for item in self.iterable:
            yield item
            self.n += 1

    def __len__(self):
        return self.total if self.total is not None else len(self.iterable)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def update(self, n=1):
        self.n += n

    def set_description(self, desc=None, refresh=True):
        pass

    def set_postfix(self, *args, **kwargs):
        pass

    set_postfix_str = set_description

    def refresh(self):
        pass

    def close(self):
        pass

    @staticmethod
    def write(text, **options):
        print(text)


def trange(*args, **options):
    return tqdm(range(*args), **options)
