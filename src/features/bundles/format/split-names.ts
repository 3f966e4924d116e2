import { readFileSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { counted, nounOf } from '../../../base/text.ts'
import { bundleRefusal } from './refusal.ts'

/** Returns the name of the n-th part, from 1: FILE.001. */
export function partName(path: string, n: number): string {
  return `${path}.${String(n).padStart(3, '0')}`
}

/** Returns the number of the part of `base` with this name, or null. */
export function partNumber(name: string, base: string): number | null {
  const match = /^(.+)\.(\d{3})$/.exec(name)
  const number = Number(match?.[2] ?? 0)
  return match?.[1] === base && number > 0 ? number : null
}

/** Returns the name of the list of digests beside the parts. */
export function sidecarName(path: string): string {
  return `${path}.sha256`
}

/**
 * Groups the files of a command line: the parts of one bundle in one group, in any order, and each other file alone. A
 * part, or the list of digests, represents all parts beside it.
 */
export function groupFiles(given: readonly string[]): string[][] {
  const groups = new Map<string, string[]>()
  for (const path of given) {
    const base = path.replace(/\.(?:\d{3}|sha256)$/, '')
    groups.set(base, [...(groups.get(base) ?? []), path])
  }
  return [...groups.values()]
}

/** Returns the files of one bundle, in order: one file, or all its parts. Throws `bundle` and names what is missing. */
export function findParts(given: readonly string[]): string[] {
  const [group, other] = groupFiles(given)
  const [first] = group ?? []
  if (group === undefined || first === undefined) throw new MirrorError('usage', 'no file is given')
  if (other?.[0] !== undefined) throw new MirrorError('bundle', `${first} and ${other[0]} are not parts of one bundle`)
  group.forEach(refuseOther)
  const base = first.replace(/\.(?:\d{3}|sha256)$/, '')
  const names = group.map((path) => resolve(path))
  const twice = names.find((name, i) => names.indexOf(name) < i)
  if (twice !== undefined) throw new MirrorError('bundle', `${twice} is given twice`)
  if (group.includes(base) && isThere(base))
    return group.every((path) => path === base || path === sidecarName(base)) ? [base] : mixed(group)
  return checkedRow(base)
}

/** Throws `bundle` for what is there and is not a regular file: a pipe would block. */
function refuseOther(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.isFile()) return
  const why = found.isDirectory()
    ? 'is a folder: give the bundle in it, or its parts'
    : 'is not a regular file (a device, a pipe or a socket): give a file, which can be read in any order'
  throw new MirrorError('bundle', `${path} ${why}`)
}

function mixed(group: readonly string[]): never {
  throw new MirrorError('bundle', `${group.join(', ')}: give the whole file or its parts, not both`)
}

function checkedRow(base: string): string[] {
  const folder = dirname(resolve(base))
  let beside: string[]
  try {
    beside = readdirSync(folder)
  } catch (error) {
    const why = systemCode(error) ?? messageOf(error)
    throw new MirrorError('bundle', `${folder} cannot be read (${why})`, { cause: error })
  }
  const own = basename(base)
  const listed = readSums(base)
  const found = beside.flatMap((name) => partNumber(name, own) ?? [])
  if (found.length === 0 && listed === null)
    throw new MirrorError('bundle', `there is no ${base}, and no part ${partName(base, 1)} either`)
  const promised = [...(listed?.keys() ?? [])].flatMap((name) => partNumber(name, own) ?? [])
  const last = Math.max(0, ...found, ...promised)
  if (last < 1) throw bundleRefusal({ kind: 'incomplete' }, `${base} is missing: copy it beside its list of digests`)
  const row = Array.from({ length: last }, (_, i) => partName(base, i + 1))
  const missing = row.filter((_, i) => !found.includes(i + 1)).map((path) => basename(path))
  if (missing.length > 0)
    throw bundleRefusal(
      { kind: 'incomplete' },
      `${missing.join(', ')} of ${counted(last, 'part')} ${nounOf(missing.length, 'is', 'are')} missing in ${folder}: copy what is missing beside the others`,
    )
  const foreign = listed === null ? undefined : row.find((path) => !listed.has(basename(path)))
  if (foreign !== undefined)
    throw new MirrorError(
      'bundle',
      `${foreign} is not a part of this bundle: ${basename(sidecarName(base))} does not list it. Move it elsewhere`,
    )
  return row
}

/** Returns the digests by name from the list beside a bundle, or null if there is no readable list. */
export function readSums(base: string): Map<string, string> | null {
  try {
    const path = sidecarName(base)
    const stat = statSync(path)
    if (!stat.isFile() || stat.size > 1 << 20) return null // a pipe would block
    const lines = readFileSync(path, 'utf8').split('\n')
    const sums = lines.flatMap((line): [string, string][] => {
      const match = /^([\da-f]{64}) [ *](.+)$/.exec(line)
      return match?.[1] === undefined || match[2] === undefined ? [] : [[match[2], match[1]]]
    })
    return new Map(sums)
  } catch {
    return null
  }
}

function isThere(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
