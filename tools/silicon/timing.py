"""Static timing before layout: arrival and slew of every net by the library's tables, the least clock period."""


class Timing:
    def __init__(self, circuit):
        self.circuit = circuit
        self.arrival, self.slew, self.delay = {}, {}, {} # delay: (gate, output pin) -> ns, mean of rise and fall
        flop = circuit.flop
        launch = next(a for a in flop.pins["Q"].arcs if "cell_rise" in a.tables)
        starts = list(circuit.inputs) + [r.q for r in circuit.registers] # inputs come from registers elsewhere
        for net in starts:
            load = circuit.load.get(net, 0.0)
            for edge in ("rise", "fall"):
                self.arrival[net, edge] = launch.tables["cell_" + edge].at(load, 0.1)
                self.slew[net, edge] = launch.tables[edge + "_transition"].at(load, 0.1)
        for gate in circuit.gates:
            for pin, net in gate.outputs.items():
                self.output(gate, pin, net)
        self.period, self.end = self.longest()

    def output(self, gate, pin, net):
        load = self.circuit.load.get(net, 0.0)
        best, delays = {}, []
        for arc in gate.cell.pins[pin].arcs:
            source = gate.inputs.get(arc.pin)
            if source is None or "cell_rise" not in arc.tables:
                continue
            for edge in ("rise", "fall"):
                other = "fall" if edge == "rise" else "rise"
                causes = {"positive_unate": [edge], "negative_unate": [other]}.get(arc.sense, [edge, other])
                for cause in causes:
                    slew = self.slew.get((source, cause), 0.1)
                    d = max(arc.tables["cell_" + edge].at(load, slew), 0.0)
                    t = self.arrival.get((source, cause), 0.0) + d
                    delays.append(d)
                    if edge not in best or t > best[edge][0]:
                        best[edge] = (t, arc.tables[edge + "_transition"].at(load, slew))
        for edge, (t, slew) in best.items():
            self.arrival[net, edge], self.slew[net, edge] = t, slew
        self.delay[gate.name, pin] = sum(delays) / len(delays) if delays else 0.0

    def longest(self):
        setup = [a for a in self.circuit.flop.pins["D"].arcs if a.kind.startswith("setup")][0]
        longest, end = 0.0, None
        for net in [r.d for r in self.circuit.registers] + [r.enable for r in self.circuit.registers if r.enable]:
            for edge in ("rise", "fall"):
                if (net, edge) not in self.arrival:
                    continue
                t = self.arrival[net, edge] + setup.tables[edge + "_constraint"].at(0.1, self.slew[net, edge])
                if t > longest:
                    longest, end = t, net
        return longest, end
