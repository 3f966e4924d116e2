import { type Fields, eachObject } from '../../../base/json/objects.ts'
import { rpmOrder } from '../../../base/versions/rpm.ts'
import type { VersionOrder } from '../../../base/versions/order.ts'

/** A version of rpm, and the stream of the module that it was built for, such as `nodejs:18`; null: it is not known. */
interface Build {
  readonly version: string
  readonly stream: string | null
}

/** Whether a version is comparable with the fixes of a record: `other`: these are of another stream; `open`: they may be. */
export type BuildVerdict = 'same' | 'other' | 'open'

/**
 * Returns whether the fixes in an element of a record's `affected` are of the line of builds that a version is of. Distributions with
 * modules have several lines of one package, each with fixes of its own, and the highest version is not the one with most of them. A version
 * says whether it was built for a module, but not for which: advisories name that in their summary.
 */
export function compareBuilds(
  summary: unknown,
  { ranges }: Fields,
  { version, stream }: Build,
  order: VersionOrder | null,
): BuildVerdict {
  if (order !== rpmOrder) return 'same'
  const fixes = eachObject(ranges).flatMap(({ events }) => eachObject(events).flatMap(({ fixed }) => textIn(fixed)))
  const modular = fixes.filter(isOfModule)
  const isModular = stream !== null || isOfModule(version)
  if (modular.length === 0) return isModular && fixes.length > 0 && fixes.every(isOfSystem) ? 'other' : 'same'
  if (!isModular) return isOfSystem(version) ? 'other' : 'same'
  const named = typeof summary === 'string' ? streamsIn(summary) : []
  if (stream !== null && named.includes(stream)) return 'same'
  if (stream !== null && named.some((one) => moduleOf(one) === moduleOf(stream))) return 'other'
  return modular.every((fix) => isOfBuild(fix, version)) ? 'same' : 'open'
}

function textIn(value: unknown): string[] {
  return typeof value === 'string' ? [value] : []
}

/** `1.2-3.module+el8.9.0+21543+4d2d4d3a`; AlmaLinux writes `module_el8`. */
function isOfModule(version: string): boolean {
  return /\.module[+_]/.test(version)
}

/** Whether a release says that it is of the system, outside of modules: `1.2-3.el9_4`. */
function isOfSystem(version: string): boolean {
  return /-.*\.el\d/.test(version) && !isOfModule(version)
}

/** `nodejs` of `nodejs:20`. */
function moduleOf(stream: string): string {
  return stream.replace(/:.*$/s, '')
}

/** `Important: nodejs:20 security update`, `virt:rhel and virt-devel:rhel security update`. */
function streamsIn(summary: string): string[] {
  return summary.toLowerCase().match(/(?<![^\s,(])[a-z\d][\w.+-]*:[\w.+-]*\w(?![^\s,);.])/g) ?? []
}

/** Whether two versions are of one build of a module, or of one version of what it packs: no two streams have the same. */
function isOfBuild(one: string, other: string): boolean {
  const packed = (version: string): string => version.replace(/^\d+:/, '').replace(/-.*$/s, '')
  const build = (version: string): string => /\.module[+_].*$/s.exec(version)?.[0] ?? version
  return packed(one) === packed(other) || build(one) === build(other)
}
