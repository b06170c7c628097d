/** Conditions and the other parts of a status that several kinds share. */
import { z } from 'zod';
import type { Immutable } from './immutable.ts';

/** One condition in the shape of Kubernetes (metav1.Condition). Types and reasons are in reasons.ts. */
export const Condition = z.object({
  type: z.string().max(316).describe('What the condition is about, such as Accepted or Programmed.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition holds.'),
  reason: z.string().min(1).max(1024).describe('Why, as one of the reasons listed in the reference.'),
  message: z.string().max(32768).describe('The same for people, with names and values.'),
  observedGeneration: z.int().min(0).describe('The generation of the spec that this condition is about.').optional(),
  lastTransitionTime: z.string().meta({ format: 'date-time' }).describe('When `status` last changed.'),
});
export type Condition = Immutable<z.infer<typeof Condition>>;

/** The conditions of a status: one per type, so that several writers can each own theirs. */
export const conditions = z
  .array(Condition)
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
  .describe('What holds for this object now, and why.')
  .optional();

/** The field of every status that tells whether it is about the spec as it is now. */
export const observedGeneration = z
  .int()
  .min(0)
  .describe('The generation of the spec that this status was computed from.')
  .optional();

/** Addresses of both families side by side. */
export const AddressLists = z.object({
  ipv4: z.array(z.string()).describe('IPv4 addresses or CIDRs.').optional(),
  ipv6: z.array(z.string()).describe('IPv6 addresses or CIDRs.').optional(),
});
export type AddressLists = Immutable<z.infer<typeof AddressLists>>;
