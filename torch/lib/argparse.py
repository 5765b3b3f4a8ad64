"""`argparse`, as far as training programs use it."""

import sys


class Namespace:
    def __init__(self, **values):
        self.__dict__.update(values)

    def __repr__(self):
        return f"Namespace({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __contains__(self, name):
        return name in self.__dict__


class _Action:
    def __init__(self, flags, options):
        self.flags, self.is_positional = flags, not flags[0].startswith("-")
        longest = max(flags, key=lambda flag: flag.startswith("--"))
        self.dest = options.pop("dest", None) or longest.lstrip("-").replace("-", "_")
        self.action, self.type = options.pop("action", "store"), options.pop("type", None)
        self.nargs, self.choices = options.pop("nargs", None), options.pop("choices", None)
        self.required, self.help = options.pop("required", False), options.pop("help", None)
        self.metavar, self.const = options.pop("metavar", None), options.pop("const", None)
        absent = {"store_true": False, "store_false": True}.get(self.action)
        self.default = options.pop("default", absent)
        if options:
            raise TypeError(f"add_argument() got an unexpected keyword argument '{next(iter(options))}'")

    def convert(self, text, parser):
        try:
            value = self.type(text) if self.type else text
        except (TypeError, ValueError):
            parser.error(f"argument {'/'.join(self.flags)}: invalid {self.type.__name__} value: {text!r}")
        if self.choices is not None and value not in self.choices:
            listed = ", ".join(map(repr, self.choices))
            parser.error(f"argument {'/'.join(self.flags)}: invalid choice: {text!r} (choose from {listed})")
        return value


class ArgumentParser:
    def __init__(self, prog=None, usage=None, description=None, epilog=None, **options):
        self.prog, self.description, self._actions = prog or sys.argv[0], description, []

    def add_argument(self, *flags, **options):
        action = _Action(flags, options)
        self._actions.append(action)
        return action

    def add_argument_group(self, *args, **kwargs):
        return self

    def set_defaults(self, **values):
        for action in self._actions:
            if action.dest in values:
                action.default = values[action.dest]

    def error(self, message):
        sys.stderr.write(f"{self.prog}: error: {message}\n")
        raise SystemExit(2)

    def parse_args(self, args=None, namespace=None):
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known

    def parse_known_args(self, args=None, namespace=None):
        words = list(sys.argv[1:] if args is None else args)
        result, unknown, seen = namespace or Namespace(), [], set()
        for action in self._actions:
            default = action.default
            if isinstance(default, str) and action.type:
                default = action.type(default)
            setattr(result, action.dest, default)
        positional = [action for action in self._actions if action.is_positional]
        while words:
            word = words.pop(0)
            if word in ("-h", "--help"):
                self.print_help()
                raise SystemExit(0)
            flag, _, attached = word.partition("=")
            action = next((action for action in self._actions if flag in action.flags and not action.is_positional), None)
            if action is None:
                if not word.startswith("-") and positional:
                    action = positional.pop(0)
                    seen.add(action)
                    setattr(result, action.dest, action.convert(word, self))
                else:
                    unknown.append(word)
                continue
            seen.add(action)
            if action.action == "store_true":
                setattr(result, action.dest, True)
            elif action.action == "store_false":
                setattr(result, action.dest, False)
            elif action.nargs in ("+", "*") or isinstance(action.nargs, int):
                values = [attached] if attached else []
                while words and not words[0].startswith("--"):
                    values.append(words.pop(0))
                setattr(result, action.dest, [action.convert(value, self) for value in values])
            else:
                if not attached and not words:
                    self.error(f"argument {'/'.join(action.flags)}: expected one argument")
                setattr(result, action.dest, action.convert(attached or words.pop(0), self))
        missing = [action for action in self._actions if action not in seen and (
            action.required or action.is_positional and action.nargs not in ("?", "*")
        )]
        if missing:
            self.error(f"the following arguments are required: {', '.join('/'.join(action.flags) for action in missing)}")
        return result, unknown

    def print_help(self):
        print(f"usage: {self.prog} [-h]" + "".join(f" [{action.flags[0]}]" for action in self._actions))
        if self.description:
            print(f"\n{self.description}")
        for action in self._actions:
            print(f"  {', '.join(action.flags):24}{action.help or ''}")


class ArgumentDefaultsHelpFormatter:
    pass


class BooleanOptionalAction:
    pass
