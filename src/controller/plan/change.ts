/** Change is one write that brings an object to where the plan wants it. The functions that choose changes are pure. */

/** One write to one object. All but `create` name the uid, so that they never hit an object that was made anew. */
export type Change<Status> =
  | { readonly kind: 'create' }
  | { readonly kind: 'delete' }
  /** Put our finalizer on. */
  | { readonly kind: 'hold' }
  /** Take our finalizer off. */
  | { readonly kind: 'release' }
  | { readonly kind: 'status'; readonly status: Status };
