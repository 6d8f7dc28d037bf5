-- Severity of an error of a GPU or a switch: of its code by the vendor's catalogue; of codes whose severity varies, and of
-- switches, the word in the message (Fatal, Nonfatal, Non-fatal).
create or replace macro error_severity(kind, of_code, message) as (
    case
        when coalesce(of_code, case kind when 'sxid' then 'varies' end) is distinct from 'varies' then of_code
        when regexp_matches(message, '\bnon-?fatal\b', 'i') then 'warning'
        when regexp_matches(message, '\bfatal\b', 'i') then 'gpu_fatal'
        else of_code
    end
);

-- The action that the driver asks for: by the words of an Xid 154, of which it is the last that counts; of a GPU that must
-- be reset, that it is reset; null: no such event.
create or replace macro recovery_action(kind, code, message) as (
    case
        when code = 154 then
            case lower(regexp_extract(message, '\bto 0x[0-9a-fA-F]+ \(([^)]*)\)', 1))
                when 'none' then 'None: the driver asks for no recovery'
                when 'gpu reset required' then 'Drain and reset the GPU'
                when 'node reboot required' then 'Drain the node and restart it'
                when 'drain p2p' then 'Drain: end the jobs that use peer-to-peer, then read the recovery action again'
                when 'drain and reset' then 'Drain and reset the GPU when its jobs have ended'
            end
        when kind = 'reset_required' then 'Drain and reset the GPU'
    end
);

-- How far an action on a node or GPU reaches: 0 replace it, 1 restart the node, 2 drain it and reset the GPU, 3 anything else.
create or replace macro action_rank(what_to_do) as (
    case
        when starts_with(what_to_do, 'Replace') then 0
        when starts_with(what_to_do, 'Drain the node') then 1
        when starts_with(what_to_do, 'Drain') then 2
        else 3
    end
);

-- Whether an event, a row of one table, is of a GPU, a row of another; one without a GPU is by its PCI address.
create or replace macro is_of_gpu(event, gpu) as (
    event.gpu_uuid = gpu.gpu_uuid
    or (event.gpu_uuid is null and event.cluster = gpu.cluster and event.node = gpu.node and event.pci_bus_id = gpu.pci_bus_id)
);
