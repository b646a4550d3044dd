"""A small drawing kit: boxes, arrows and words as one SVG file, in the looks of the course.

SVG by hand: the file is a few lines of text, the same on every machine, and sharp at any size.
"""

from xml.sax.saxutils import escape

from utils.style import GPU_LOOKS, HOST_COLOUR

WIDTH = 760
LOOKS = {"host": HOST_COLOUR, "plain": "#FFFFFF", "bad": "#FFFFFF", "free": "#F4F4F4"}
LOOKS |= {f"GPU {i}": colour for i, (colour, _) in enumerate(GPU_LOOKS)}


class Sheet:
    """A page of `WIDTH` × `height` units on which things are put from the top left."""

    def __init__(self, height: int, title: str) -> None:
        self.height, self.title = height, title
        self.parts: list[str] = []

    def text(self, x, y, words: str, *, size=18, bold=False, middle=True) -> "Sheet":
        """Lines of text; `y` is the middle of the first one."""
        for number, line in enumerate(words.split("\n")):
            self.parts.append(
                f'<text x="{x}" y="{y + number * (size + 5)}" font-size="{size}"'
                f"{' font-weight=' + chr(34) + 'bold' + chr(34) if bold else ''}"
                f' text-anchor="{"middle" if middle else "start"}"'
                f' dominant-baseline="central">{escape(line)}</text>'
            )
        return self

    def box(self, x, y, width, height, words="", look="plain", *, size=18) -> "Sheet":
        """A box with centred words; `bad` has a thick broken edge."""
        edge = ' stroke-width="4" stroke-dasharray="9 6"' if look == "bad" else ' stroke-width="2"'
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8"'
            f' fill="{LOOKS[look]}" stroke="#222"{edge}/>'
        )
        rise = (words.count("\n") * (size + 5)) / 2
        return self.text(x + width / 2, y + height / 2 - rise, words, size=size)

    def arrow(self, x1, y1, x2, y2, words="", *, broken=False) -> "Sheet":
        """An arrow, with words above its middle."""
        dash = ' stroke-dasharray="8 6"' if broken else ""
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#222" stroke-width="3"'
            f'{dash} marker-end="url(#tip)"/>'
        )
        return self.text((x1 + x2) / 2, (y1 + y2) / 2 - 16, words, size=17) if words else self

    def cross(self, x, y, size=16) -> "Sheet":
        """A cross: this does not work."""
        for a, b in ((size, size), (size, -size)):
            self.parts.append(
                f'<line x1="{x - a}" y1="{y - b}" x2="{x + a}" y2="{y + b}"'
                ' stroke="#B00000" stroke-width="6"/>'
            )
        return self

    def svg(self) -> str:
        """The file's text."""
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}"'
                f' width="{WIDTH}" height="{self.height}" role="img"'
                ' font-family="DejaVu Sans, Verdana, sans-serif" fill="#111">',
                f"<title>{escape(self.title)}</title>",
                '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="5"'
                ' markerHeight="5" orient="auto"><path d="M0 0L10 5L0 10z" fill="#222"/>'
                "</marker></defs>",
                f'<rect width="{WIDTH}" height="{self.height}" fill="#FFFFFF"/>',
                *self.parts,
                "</svg>\n",
            )
        )
