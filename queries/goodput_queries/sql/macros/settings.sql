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

-- Whether a setting of network cards (`1500`, or `9000: eth0; 1500: eth1,eth2`) is at most so much on one that is as fast
-- as this, by their speeds in Mb/s in the same form.
create or replace macro is_small_on_a_fast_card(settings, most, speeds, fast) as (
    list_bool_or(
        list_transform(
            string_split(settings, '; '),
            lambda part: try_cast(split_part(part, ': ', 1) as bigint) <= most
            and list_bool_or(
                list_transform(
                    string_split(speeds, '; '),
                    lambda speed: try_cast(split_part(speed, ': ', 1) as bigint) >= fast
                    and (
                        not contains(part, ': ')
                        or not contains(speed, ': ')
                        or list_has_any(
                            string_split(split_part(part, ': ', 2), ','), string_split(split_part(speed, ': ', 2), ',')
                        )
                    )
                )
            )
        )
    )
);
