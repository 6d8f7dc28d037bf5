-- Errors that GPUs reported (Xid and others) whose time is known, as a source reports them.
-- ts: with the fractions of a millisecond that put events in order
-- grain: none (two sources may report one event)
select source, node, gpu_uuid, pci_bus_id, ts, to_ms(ts) as ts_ms, code
from raw.gpu_events
-- a latch first seen at start-up may have been set months ago
where ts_precision <> 'at_or_before' or source not in ('dcgm', 'prometheus')
