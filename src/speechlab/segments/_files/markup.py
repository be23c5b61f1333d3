"""XML with the lines of its elements, for ELAN and TTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from speechlab.errors import SegmentFileError

if TYPE_CHECKING:
    from speechlab.segments._files.source import SourceFile

_DEEPEST = 200
"""Elements within each other that are read; files of captions and annotations have about ten."""
# An empty element takes 100 bytes and more of memory, and 4 of a file; captions of 24 hours are 50,000.
_MAX_ELEMENTS = 1_000_000


@dataclass(slots=True)
class Element:
    """An element: its name and attributes without prefixes, its line, and its texts and elements in their order."""

    name: str
    attributes: dict[str, str]
    line: int
    # A tuple while it is a single text, as of most: those cost Python's collector of garbage nothing.
    content: list[str | Element] | tuple[()] | tuple[str] = ()

    def append(self, part: str | Element) -> None:
        """Add a text or an element."""
        content = self.content
        if type(content) is list:
            content.append(part)
        elif content or type(part) is not str:
            self.content = [*content, part]
        else:
            self.content = (part,)

    def iterate_children(self, *names: str) -> Iterator[Element]:
        """Yield the elements within this one that have one of these names."""
        return (part for part in self.content if type(part) is Element and part.name in names)

    def find_descendant(self, name: str) -> Element | None:
        """Return the first element of this name at any depth, or None."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            if element.name == name:
                return element
            waiting += reversed([part for part in element.content if isinstance(part, Element)])
        return None

    def get_direct_text(self) -> str:
        """Return the text directly within the element."""
        if len(self.content) == 1 and isinstance(self.content[0], str):
            return self.content[0]
        return "".join(part for part in self.content if isinstance(part, str))


def parse_xml(source: SourceFile, *, spaces: bool = True) -> Element:
    """Return the root of a file, with texts of white space alone if ``spaces``; an error that names its line."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    root = Element("", {}, 1)
    opened, count = [root], 0

    def open_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        line = parser.CurrentLineNumber
        if count > _MAX_ELEMENTS:
            source.raise_fault(f"there are more than {_MAX_ELEMENTS:,} elements", line)
        if len(opened) > _DEEPEST:
            source.raise_fault(f"the elements are within each other more than {_DEEPEST} times", line)
        for key in attributes:
            if ":" in key:
                attributes = {key.rpartition(":")[2]: value for key, value in attributes.items()}
                break
        element = Element(name.rpartition(":")[2] if ":" in name else name, attributes, line)
        opened[-1].append(element)
        opened.append(element)

    def close_element(_: str) -> None:
        opened.pop()

    def add_text(text: str) -> None:
        if spaces or not text.isspace():
            opened[-1].append(text)

    handlers: Any = parser
    handlers.StartElementHandler, handlers.EndElementHandler = open_element, close_element
    handlers.CharacterDataHandler = add_text
    try:
        parser.Parse(source.data, True)
    except SegmentFileError:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:
        reason = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else "unknown encoding"
        source.raise_fault(f"this is not valid XML: {reason}", getattr(error, "lineno", None))
    return next(
        root.iterate_children(*(part.name for part in root.content if isinstance(part, Element))), root
    )
