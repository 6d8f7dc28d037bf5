-- Whether a list of names of devices, as NCCL_SOCKET_IFNAME and NCCL_IB_HCA have it, names one that there is: by how they
-- begin, with = in front by the name itself (of a port also without its number), with ^ all but these.
create or replace macro names_a_device(named, devices) as (
    starts_with(named, '^')
    or list_bool_or(
        list_transform(
            string_split(devices, ','),
            lambda device: list_bool_or(
                list_transform(
                    string_split(ltrim(named, '='), ','),
                    lambda name: case
                        when starts_with(named, '=') then ltrim(name, '=') in (device, split_part(device, ':', 1))
                        else starts_with(device, name)
                    end
                )
            )
        )
    )
);
