/** Messages of Envoy's configuration as JSON: plain values, sorted and named by the functions that make them. */
export type EnvoyMessage = { readonly [field: string]: Value };
type Value = string | number | boolean | EnvoyMessage | readonly Value[];

const TYPE_PREFIX = 'type.googleapis.com/';

/** A message that says what it is, for fields of any type. */
export const typed = (type: string, fields: EnvoyMessage = {}): EnvoyMessage => ({
  '@type': `${TYPE_PREFIX}${type}`,
  ...fields,
});

/** An extension by its name and configuration. */
export const extension = (name: string, type: string, fields: EnvoyMessage = {}): EnvoyMessage => ({
  name,
  typed_config: typed(type, fields),
});

/** Durations are texts. */
export const seconds = (count: number): string => `${count}s`;
