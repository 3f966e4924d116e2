import { realpathSync } from 'node:fs'
import { sep } from 'node:path'
import { splitKeys } from '../kinds/keys.ts'
import { type Checked, place } from '../problems.ts'

/** Problems of the settings of bundles that show only together: a box without the keys that it needs. */
export function checkBundles(checked: Checked): string[] {
  const { values, refused } = checked
  const needs = (box: string, keys: string, why: string): string[] => {
    if (refused.has(box) || refused.has(keys) || typeof values.get(box) !== 'string') return []
    if (hasKeys(values.get(keys))) return []
    return [`${place(checked, box)}: ${why}. Give ${keys}, or null here.`]
  }
  return [
    ...needs(
      'bundle.outbox',
      'bundle.signingKeys',
      'there is no key to sign with ("patchmirror bundle keygen FILE" makes one)',
    ),
    ...needs('bundle.inbox', 'bundle.trustedKeys', 'no key is trusted, so every bundle would be refused'),
    ...checkFolders(checked),
  ]
}

/** Whether a list of keys has any beside those that are refused. */
export function hasKeys(given: unknown): boolean {
  return Array.isArray(given) && splitKeys(given as string[]).trustedKeys.length > 0
}

/** A mirror that takes what it puts out, or whose data are moved about as bundles are, harms itself. */
function checkFolders(checked: Checked): string[] {
  const { values, refused } = checked
  const folderOf = (key: string): string | null => {
    const value = values.get(key)
    return typeof value === 'string' && !value.startsWith('oci:') && !refused.has(key) ? realOf(value) : null
  }
  const inbox = folderOf('bundle.inbox')
  const outbox = folderOf('bundle.outbox')
  const data = folderOf('data.dir')
  const problems: string[] = []
  if (inbox !== null && inbox === outbox)
    problems.push(
      `${place(checked, 'bundle.inbox')}: ${inbox} is ${place(checked, 'bundle.outbox')} too: this mirror would take its own bundles. Give two folders.`,
    )
  for (const [key, box] of [
    ['bundle.inbox', inbox],
    ['bundle.outbox', outbox],
  ] as const) {
    if (box === null || data === null || !(isWithin(box, data) || isWithin(data, box))) continue
    problems.push(
      `${place(checked, key)}: ${box} and ${place(checked, 'data.dir')}, which is ${data}, contain one another. Give a folder apart from the mirror's own data.`,
    )
  }
  return problems
}

/** Where a folder really is; as it is named while there is none. */
function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** Reports whether a folder equals another or is inside it; both absolute. */
function isWithin(inner: string, outer: string): boolean {
  const end = outer.endsWith(sep) ? outer : outer + sep
  return inner === outer || inner.startsWith(end)
}
