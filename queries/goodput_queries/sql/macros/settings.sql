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

-- The numbers of a list of them, as Linux writes it: `0-2,4`.
create or replace macro numbers_of(listed) as (
    flatten(list_transform(
        string_split(listed, ','),
        lambda part: range(
            try_cast(split_part(part, '-', 1) as bigint),
            -- no machine has as many
            least(try_cast(regexp_extract(part, '[0-9]+$') as bigint), try_cast(split_part(part, '-', 1) as bigint) + 65535) + 1
        )
    ))
);

-- The numbers that a setting has (`0-63: 0; 64-127: 1`, or one text for all) for the things of these numbers; null: for all.
create or replace macro numbers_for(setting, things) as (
    numbers_of(array_to_string(
        list_transform(
            list_filter(
                string_split(setting, '; '),
                lambda part: things is null or not contains(part, ': ')
                or list_has_any(numbers_of(split_part(part, ': ', 2)), things)
            ),
            lambda part: split_part(part, ': ', 1)
        ),
        ','
    ))
);
