# SPDX-License-Identifier: Apache-2.0
"""Reads YAML into mappings and lists that know the lines of what is in them, so that a mistake names its line."""

import difflib
import pathlib
import re

import yaml
import yaml.loader

TOP = pathlib.Path(__file__).resolve().parents[2]
NAME = "a name in C"  # the type of a value, beside those of Python


class Mistake(Exception):
    """FILE:LINE and a sentence."""

    def __init__(self, where, text):
        super().__init__(f"{where}: {text}")


class Map(dict):
    """A mapping that knows the place of each key, and its own."""

    def __init__(self, where):
        super().__init__()
        self.where, self.at = where, {}

    def update(self, other):
        """Takes over the keys of another one, with their places."""
        super().update(other)
        self.at.update(other.at)


class Items(list):
    """A list that knows the place of each entry, and its own."""

    def __init__(self, where):
        super().__init__()
        self.where, self.at = where, []


class Loader(yaml.loader.SafeLoader):
    """Keeps the anchors of the document."""

    def compose_document(self):
        self.get_event()
        node = self.compose_node(None, None)
        self.get_event()
        return node


def load(path):
    """(the document, {anchor: (place, scalar or list)})."""
    name = str(path.resolve().relative_to(TOP) if path.resolve().is_relative_to(TOP) else path)
    loader = Loader(path.read_text("utf-8"))

    def place(node):
        return f"{name}:{node.start_mark.line + 1}"

    def value(node):
        if isinstance(node, yaml.ScalarNode):
            return loader.construct_object(node)
        if isinstance(node, yaml.SequenceNode):
            found = Items(place(node))
            for child in node.value:
                found.append(value(child))
                found.at.append(place(child))
            return found
        found = Map(place(node))
        for key, child in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise Mistake(place(key), "a key must be text: put it into quotes")
            if key.value in found:
                raise Mistake(place(key), f"'{key.value}' stands twice; the first is at {found.at[key.value]}")
            found[key.value], found.at[key.value] = value(child), place(key)
        return found

    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.context_mark or error.problem_mark
        raise Mistake(f"{name}:{mark.line + 1}", f"this is not YAML: {error.problem}") from None
    if not isinstance(node, yaml.MappingNode):
        raise Mistake(f"{name}:1", "a mapping must be here that begins with 'kind:'")
    return value(node), {anchor: (place(child), value(child)) for anchor, child in loader.anchors.items()
                         if not isinstance(child, yaml.MappingNode)}


def find(name, known, where, what):
    """The entry of this name; a mistake names the nearest one."""
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        raise Mistake(where, f"{what} '{name}'" + (f"; did you mean '{near[0]}'?" if near else
                                                   f"; there are: {', '.join(sorted(known)) or 'none'}"))
    return known[name] if isinstance(known, dict) else name


def check_keys(found, known, what, where):
    """Refuses what is not a mapping, and keys that do not exist."""
    if not isinstance(found, Map):
        raise Mistake(where, f"{what} must be a mapping")
    for key, place in found.at.items():
        find(key, known, place, f"{what} has no key")


def take(found, key, wanted, needed=False):
    """The value of a key, which must have this type; None: it is absent."""
    if key not in found:
        if needed:
            raise Mistake(found.where, f"'{key}' is missing; add '{key}:'")
        return None
    got = found[key]
    fits = isinstance(got, str) and re.fullmatch(r"[A-Za-z_]\w*", got) if wanted is NAME else \
        isinstance(got, wanted) and isinstance(got, bool) == (wanted is bool)
    if not fits:
        names = {str: "text; put it into quotes", int: "a whole number", bool: "true or false", Map: "a mapping",
                 NAME: NAME}
        raise Mistake(found.at[key], f"'{key}' must be {names.get(wanted, 'a list')}")
    return got
