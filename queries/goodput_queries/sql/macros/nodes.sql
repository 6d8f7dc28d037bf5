-- Whether a name is that of a node with or without a domain, in upper or lower case, where no other node has it (known_cluster is
-- null), at least none of the cluster that its source names; known: a row of stg_node_aliases, by the first part of the node's name.
-- Nearly all rows name a node as it is known, so that parts of few names are compared.
create or replace macro is_alias(name, name_cluster, known_cluster, known) as (
    case when known_cluster is null then split_part(lower(name), '.', 1) end = known.host
    and (
        starts_with(lower(name) || '.', lower(known.node) || '.')
        or starts_with(lower(known.node), lower(name) || '.')
    )
    and case
        when known.is_only then coalesce(name_cluster = known.cluster, true)
        else known.is_only_of_cluster and name_cluster = known.cluster
    end
);

-- Whether a job may run on a node, by the nodes that it asks for and leaves out and by the features that it needs (a set
-- of 'a&b'); features that no source names decide nothing.
create or replace macro can_use_node(node, features, requested_nodes, excluded_nodes, feature_sets) as (
    coalesce(list_contains(requested_nodes, node), true)
    and not coalesce(list_contains(excluded_nodes, node), false)
    and (
        feature_sets is null
        or features is null
        or len(list_filter(feature_sets, lambda one: list_has_all(features, string_split(one, '&')))) > 0
    )
);
