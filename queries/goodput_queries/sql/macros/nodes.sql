-- Whether a name is that of a node with or without a domain, where no other node has it (known_cluster is null); host: the first
-- part of the node's name. Nearly all rows name a node as it is known, so that parts of few names are compared.
create or replace macro is_alias(name, known_cluster, node, host) as (
    case when known_cluster is null then split_part(name, '.', 1) end = host
    and (starts_with(name, node || '.') or starts_with(node, name || '.'))
);
