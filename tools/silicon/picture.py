"""Line pictures as SVG, without a library: one plot, logarithmic or linear axes, a legend beside the lines."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 78, 196, 44, 58
COLOURS = ["#1f4e9c", "#c0392b", "#1e8449", "#7d3c98", "#b9770e", "#117a8b", "#555555", "#d35400"]
MARKS = ["circle", "square", "diamond"]


class Axis:
    def __init__(self, label, low, high, ticks, log):
        self.label, self.low, self.high, self.ticks, self.log = label, low, high, ticks, log

    def share(self, value):
        f = math.log if self.log else float
        return (f(value) - f(self.low)) / (f(self.high) - f(self.low))


def number(value):
    return "%g" % value if value < 1000 else "{:,}".format(round(value)).replace(",", " ")


def mark(shape, x, y, colour):
    if shape == "square":
        return '<rect x="%.1f" y="%.1f" width="7" height="7" fill="%s"/>' % (x - 3.5, y - 3.5, colour)
    if shape == "diamond":
        return '<path d="M%.1f %.1f l4.5 4.5 l-4.5 4.5 l-4.5 -4.5 z" fill="%s"/>' % (x, y - 4.5, colour)
    return '<circle cx="%.1f" cy="%.1f" r="3.7" fill="%s"/>' % (x, y, colour)


def draw(title, x_axis, y_axis, series, first_line):
    """series: (name, [(x, y, text beside the point or "")], dashed)."""
    across = lambda v: LEFT + x_axis.share(v) * (WIDTH - LEFT - RIGHT)
    up = lambda v: HEIGHT - BOTTOM - y_axis.share(v) * (HEIGHT - TOP - BOTTOM)
    out = ["<!-- %s -->" % first_line,
           '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">'
           % (WIDTH, HEIGHT), '<rect width="100%" height="100%" fill="#ffffff"/>',
           '<text x="%d" y="24" font-size="15" fill="#111111">%s</text>' % (LEFT, title)]
    for v in x_axis.ticks:
        out.append('<path d="M%.1f %d V%d" stroke="#dddddd"/><text x="%.1f" y="%d" text-anchor="middle" fill="#333333">%s</text>'
                   % (across(v), TOP, HEIGHT - BOTTOM, across(v), HEIGHT - BOTTOM + 18, number(v)))
    for v in y_axis.ticks:
        out.append('<path d="M%d %.1f H%d" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end" fill="#333333">%s</text>'
                   % (LEFT, up(v), WIDTH - RIGHT, LEFT - 8, up(v) + 4, number(v)))
    out.append('<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#888888"/>'
               % (LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM))
    out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#111111">%s</text>'
               % ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, x_axis.label))
    out.append('<text x="18" y="%.1f" text-anchor="middle" fill="#111111" transform="rotate(-90 18 %.1f)">%s</text>'
               % ((TOP + HEIGHT - BOTTOM) / 2, (TOP + HEIGHT - BOTTOM) / 2, y_axis.label))
    for i, (name, points, dashed) in enumerate(series):
        colour, shape = COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)]
        path = " ".join("%s%.1f %.1f" % ("L" if j else "M", across(x), up(y)) for j, (x, y, _) in enumerate(points))
        out.append('<path d="%s" fill="none" stroke="%s" stroke-width="1.8"%s/>'
                   % (path, colour, ' stroke-dasharray="6 4"' if dashed else ""))
        for x, y, text in points:
            if not dashed:
                out.append(mark(shape, across(x), up(y), colour))
            if text:
                out.append('<text x="%.1f" y="%.1f" font-size="10" fill="%s">%s</text>'
                           % (across(x) + 5, up(y) - 6, colour, text))
        y = TOP + 12 + 20 * i
        out.append('<path d="M%d %d h22" stroke="%s" stroke-width="1.8"%s/>%s<text x="%d" y="%d" fill="#111111">%s</text>'
                   % (WIDTH - RIGHT + 12, y, colour, ' stroke-dasharray="6 4"' if dashed else "",
                      "" if dashed else mark(shape, WIDTH - RIGHT + 23, y, colour), WIDTH - RIGHT + 40, y + 4, name))
    out.append("</svg>")
    return "\n".join(out) + "\n"
