/** The objects inside a request: metadata as the API server checks it, spec and status as anybody may have written them. */
import { ObjectMeta } from '../../api/object-meta.ts';
import type { ApiObject } from '../../core/project/index.ts';
import type { AdmissionRequest } from '../../runtime/serve/admission-review.ts';

/** An object with generateName has no name yet when defaults are filled in. */
const metadataSchema = ObjectMeta.extend({ name: ObjectMeta.shape.name.default('') });

/** An object of a request. */
export interface RequestedObject extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly finalizers?: readonly string[] | undefined };
}

/** The object that somebody wants to write; undefined for DELETE. Throws on what no API server sends. */
export const objectOf = (request: AdmissionRequest): RequestedObject | undefined => read(request.object, request);

/** The object that is there; undefined for CREATE. Throws on what no API server sends. */
export const oldObjectOf = (request: AdmissionRequest): RequestedObject | undefined => read(request.oldObject, request);

const read = (object: unknown, { namespace }: AdmissionRequest): RequestedObject | undefined => {
  if (object === undefined) return undefined;
  // A parse boundary: nothing is assumed about the parts, and only metadata must be readable.
  const { metadata, spec, status } = object as Readonly<Record<'metadata' | 'spec' | 'status', unknown>>;
  const known = metadataSchema.parse(metadata);
  // The request knows the namespace before the object does.
  return { metadata: namespace ? { ...known, namespace } : known, spec, status };
};
