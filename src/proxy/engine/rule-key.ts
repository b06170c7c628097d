/** The identifier of a rule where its id cannot stand: in names of DNS and of nginx's configuration. The same for ever. */
import { hash } from 'node:crypto';

export const keyOf = (id: string): string => `r${hash('sha256', id).slice(0, 16)}`;
