/** How deep the values of a request may be nested. The parsers of protobuf go no deeper either. */
export const MAX_DEPTH = 100;

/** How many values one message of a request may have: in JSON the elements and members, in binary the fields. */
export const MAX_VALUES = 100_000;

/** What a value takes in memory, beside its bytes. */
export const VALUE_BYTES = 128;
