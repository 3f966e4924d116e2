import { isUtf8 } from 'node:buffer'
import { MirrorError, messageOf } from '../errors.ts'
import { PATCH_FEED, SYSTEM_MATRIX } from '../upstream/feeds.ts'
import { refuseCostly } from './json-cost.ts'

/** Checks that a feed is what its path says, and counts what it lists, for the guard. Throws `upstream_shape`. */
export function countEntries(path: string, bytes: Buffer): number {
  const value = parse(path, bytes)
  if (path === PATCH_FEED) return countPackages(path, value)
  if (path === SYSTEM_MATRIX) return countSystems(path, value)
  return Array.isArray(value) ? value.length : countLeaves(value)
}

function parse(path: string, bytes: Buffer): unknown {
  if (bytes.length === 0) throw shape(path, 'the answer is empty')
  if (!isUtf8(bytes)) throw shape(path, 'it is not UTF-8')
  const costly = refuseCostly(bytes)
  if (costly !== null) throw shape(path, costly)
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    const start = JSON.stringify(bytes.toString('utf8', 0, 40))
    throw shape(path, `not JSON (${messageOf(error).slice(0, 80)}); it begins with ${start}`)
  }
}

/** `{"alpine": [{"distroversion", "packages": [{"pkg": {…}}]}]}`, the Alpine secdb shape (wire facts). */
function countPackages(path: string, value: unknown): number {
  let packages = 0
  for (const [ecosystem, releases] of members(path, value)) {
    if (!Array.isArray(releases)) throw shape(path, `${ecosystem} is not a list`)
    for (const release of releases as unknown[]) {
      const listed = isRecord(release) ? release['packages'] : undefined
      if (!Array.isArray(listed)) throw shape(path, `an entry of ${ecosystem} has no packages`)
      packages += listed.length
    }
  }
  return packages
}

/** `{"ecosystems": {"alpine": [{…}]}, "package_ecosystems": […], "platforms": […]}` (wire facts). */
function countSystems(path: string, value: unknown): number {
  const ecosystems = Object.fromEntries(members(path, value))['ecosystems']
  if (!isRecord(ecosystems)) throw shape(path, 'it has no ecosystems')
  return countLeaves(ecosystems)
}

function countLeaves(value: unknown): number {
  if (!isRecord(value)) return 1
  let count = 0
  for (const member of Object.values(value)) count += Array.isArray(member) ? member.length : 1
  return count
}

function members(path: string, value: unknown): [string, unknown][] {
  if (!isRecord(value)) throw shape(path, 'it is not a JSON object')
  return Object.entries(value)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function shape(path: string, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${path}: ${why}`)
}
