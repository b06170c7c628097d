/** The gate: a proxy serves of an object what the operator has seen of it, so that nothing is served that was not judged. */
import type { EgressView } from './view.ts';

/**
 * What a proxy plans with: of each object the view as it is when the operator has seen that generation, else the view that
 * was let through before, else nothing. An object that is being deleted passes at once: its rules go. `before` is what
 * this function returned the last time.
 */
export const letThrough = (before: readonly EgressView[], now: readonly EgressView[]): EgressView[] => {
  const earlier = new Map(before.map((view) => [view.key, view]));
  return now.flatMap((view) => {
    if (view.isSeen || view.isDeleting) return [view];
    const kept = earlier.get(view.key);
    return kept === undefined || kept.isDeleting ? [] : [kept];
  });
};
