"""Energy of a circuit at work: a timed simulation of its gates, many independent trials in the bits of a word.

Gates have inertial delays (what is shorter than a gate's delay does not pass it), so glitches are counted as far
as they live. An edge costs what the library says it costs inside of the cell, and half C V^2 of what it drives.
"""

STEP = 0.02 # ns


def windowed(values, before, depth, both):
    """both(values[t - depth + 1 .. t]) for every t, in log(depth) passes; `before` holds for t < 0."""
    width, out = 1, values
    first = before
    while width < depth:
        by = min(width, depth - width)
        out = [both(x, out[t - by] if t >= by else first) for t, x in enumerate(out)]
        width += by
    return out


class Activity:
    def __init__(self, circuit, timing, trials):
        self.circuit, self.timing = circuit, timing
        self.mask = (1 << trials) - 1
        self.value = {"0": 0, "1": self.mask, "x": 0}
        self.joules = {"logic": 0.0, "registers": 0.0, "clock": 0.0, "inputs": 0.0} # picojoules, all trials
        self.toggles = self.functional = 0
        for net in circuit.inputs + [r.q for r in circuit.registers]:
            self.value[net] = 0
        self.settle()

    def settle(self):
        for gate in self.circuit.gates:
            for pin, value in gate.values(self.value, self.mask).items():
                self.value[gate.outputs[pin]] = value

    def edges(self, net, rises, falls, pin, slew):
        """Picojoules of edges of a net that `pin` drives (None: from outside)."""
        load = self.circuit.load.get(net, 0.0)
        v = self.circuit.library.voltage
        pj = (rises + falls) * 0.5 * load * v * v
        if pin is not None:
            pj += rises * pin.energy("rise", load, slew) + falls * pin.energy("fall", load, slew)
        return pj

    def cycle(self, inputs, measured):
        """One clock: registers take their D, inputs change with them; then everything settles."""
        circuit, mask, value = self.circuit, self.mask, self.value
        flop = circuit.flop
        starts = {}
        for r in circuit.registers:
            e = mask if r.enable is None else value[r.enable]
            starts[r.q] = (value[r.q] & ~e & mask) | (value[r.d] & e)
            if measured:
                pj = flop.pins["CLK"].energy("rise", 0, 0.06) + flop.pins["CLK"].energy("fall", 0, 0.06) \
                    + (flop.pins["CLK"].capacitance + circuit.wire) * circuit.library.voltage ** 2
                self.joules["clock"] += e.bit_count() * pj
        for net, x in inputs.items():
            starts[net] = x
        if not measured:
            value.update(starts)
            self.settle()
            return
        wave = {} # net -> (value before, its values from step 0 on)
        register_nets = {r.q for r in circuit.registers}
        launch = circuit.flop.pins["Q"]
        for net, x in starts.items():
            old, changed = value[net], value[net] ^ x
            rises, falls = (changed & x).bit_count(), (changed & old).bit_count()
            inside = net in register_nets
            slew = self.timing.slew.get((net, "rise"), 0.1)
            pj = self.edges(net, rises, falls, launch if inside else None, 0.1 if inside else slew)
            self.joules["registers" if inside else "inputs"] += pj
            if changed:
                delay = max(int(self.timing.arrival[net, "rise"] / STEP + 0.5), 0)
                wave[net] = (old, [old] * delay + [x])
            value[net] = x
        for gate in circuit.gates:
            heard = {p: wave[n] for p, n in gate.inputs.items() if n in wave}
            if not heard:
                continue
            length = max(len(w) for _, w in heard.values())
            self.gate(gate, heard, length, wave)

    def gate(self, gate, heard, length, wave):
        value, mask = self.value, self.mask
        steps = {pin: [] for pin in gate.outputs}
        v = {n: value[n] for n in gate.inputs.values()}
        for t in range(length):
            for pin, (_, w) in heard.items():
                v[gate.inputs[pin]] = w[t] if t < len(w) else w[-1]
            for pin, x in gate.values(v, mask).items():
                steps[pin].append(x)
        for pin, net in gate.outputs.items():
            old, target = value[net], steps[pin]
            depth = max(int(self.timing.delay[gate.name, pin] / STEP + 0.5), 1)
            target = target + [target[-1]] * depth
            ones = windowed(target, old, depth, lambda a, b: a & b)
            some = windowed(target, old, depth, lambda a, b: a | b)
            now, out, rises, falls = old, [], 0, 0
            for t in range(len(target)):
                new = ones[t] | (now & some[t])
                changed = now ^ new
                if changed:
                    rises += (changed & new).bit_count()
                    falls += (changed & now).bit_count()
                out.append(new)
                now = new
            if rises + falls:
                self.toggles += rises + falls
                self.functional += (old ^ now).bit_count()
                slew = self.timing.slew.get((net, "rise"), 0.1)
                self.joules["logic"] += self.edges(net, rises, falls, gate.cell.pins[pin], slew)
                while len(out) > 1 and out[-1] == out[-2]:
                    out.pop()
                wave[net] = (old, out)
                value[net] = now
