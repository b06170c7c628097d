/** The metadata of a Kubernetes object, as far as Sallyport reads it, and the frame that every kind shares. */
import { z } from 'zod';

const OwnerReference = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().optional(),
  blockOwnerDeletion: z.boolean().optional(),
});

/** Metadata; fields that Sallyport does not read are dropped by a parse. */
export const ObjectMeta = z.object({
  name: z.string(),
  namespace: z.string().optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.number().optional(),
  creationTimestamp: z.string().optional(),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z.array(OwnerReference).optional(),
});

/** Returns the schema of a whole object: apiVersion, kind and metadata before the kind's own fields. */
export function objectOf<Version extends string, Kind extends string, Fields extends z.ZodRawShape>(
  apiVersion: Version,
  kind: Kind,
  fields: Fields,
) {
  return z.object({ apiVersion: z.literal(apiVersion), kind: z.literal(kind), metadata: ObjectMeta, ...fields });
}

/** The API group of the egress gateway. */
export const gatewayGroup = 'egressgateway.spidernet.io';
/** The API group of the egress proxy. */
export const proxyGroup = 'bkbcs.tencent.com';
