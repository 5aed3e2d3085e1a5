// The pins of a board wrapper's m_axi_gmem port, which every Verilated unit has under these names,
// and the two halves of a cycle of the AXI memory behind it.
#ifndef SIM_AXI_PINS_HPP
#define SIM_AXI_PINS_HPP

#include <cstring>

#include "sim/axi_memory.hpp"

namespace mr_sim_impl {

// What the unit says to its memory.
template <class Top>
axi_from_unit axi_outputs(Top *t) {
    axi_from_unit from;
    from.awvalid = t->m_axi_gmem_awvalid;
    from.awid = t->m_axi_gmem_awid;
    from.awaddr = t->m_axi_gmem_awaddr;
    from.awlen = t->m_axi_gmem_awlen;
    from.wvalid = t->m_axi_gmem_wvalid;
    from.wdata = t->m_axi_gmem_wdata.data();
    from.wstrb = t->m_axi_gmem_wstrb;
    from.wlast = t->m_axi_gmem_wlast;
    from.bready = t->m_axi_gmem_bready;
    from.arvalid = t->m_axi_gmem_arvalid;
    from.arid = t->m_axi_gmem_arid;
    from.araddr = t->m_axi_gmem_araddr;
    from.arlen = t->m_axi_gmem_arlen;
    from.rready = t->m_axi_gmem_rready;
    return from;
}

// What the memory says to the unit from the clock edge on.
template <class Top>
void axi_inputs(Top *t, const axi_to_unit &to) {
    t->m_axi_gmem_awready = to.awready;
    t->m_axi_gmem_wready = to.wready;
    t->m_axi_gmem_bvalid = to.bvalid;
    t->m_axi_gmem_bid = to.bid;
    t->m_axi_gmem_bresp = to.bresp;
    t->m_axi_gmem_arready = to.arready;
    t->m_axi_gmem_rvalid = to.rvalid;
    if (to.rvalid) {
        memcpy(t->m_axi_gmem_rdata.data(), to.rdata, 64);
        t->m_axi_gmem_rid = to.rid;
        t->m_axi_gmem_rresp = to.rresp;
        t->m_axi_gmem_rlast = to.rlast;
    }
}

} // namespace mr_sim_impl

#endif
