/** The first line of the member with the trust root; each further line is one of its texts as a JSON string. */
export const TRUST_HEADER = '{"kind":"patchmirror-trust-root","format":1}'

/** Largest trust root that a bundle carries, characters of all its texts. */
export const LARGEST_TRUST = 2 ** 20
