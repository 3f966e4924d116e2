import type { Checked } from './problems.ts'

/** Problems of the settings of bundles that show only together: a box without the keys that it needs. */
export function checkBundles({ values, refused, origins }: Checked): string[] {
  const needs = (box: string, keys: string, why: string): string[] => {
    if (refused.has(box) || refused.has(keys) || typeof values.get(box) !== 'string') return []
    const given = values.get(keys)
    if (Array.isArray(given) && given.length > 0) return []
    return [`${box} (${origins.get(box) ?? 'not set'}): ${why}. Give ${keys}, or null here.`]
  }
  return [
    ...needs(
      'bundle.outbox',
      'bundle.signingKeys',
      'there is no key to sign with ("patchmirror keygen FILE" makes one)',
    ),
    ...needs(
      'bundle.inbox',
      'bundle.trustedKeys',
      'no key is trusted, so every bundle would be refused',
    ),
  ]
}
