/** How much the head of a message may be, in both directions: as much as Squid takes. */
export const HEAD_KIB = 64;
export const HEADERS = 500;
