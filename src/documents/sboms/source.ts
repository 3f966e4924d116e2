import { type Fields, eachObject } from '../../base/json/objects.ts'
import { type SbomSource, bounded, textOr } from './sbom.ts'

/** How generators call the parts of a source package, in properties of CycloneDX; Trivy's name may have a prefix. */
const SYFT_NAMES = ['syft:metadata:source', 'syft:metadata:originPackage'] as const
const SYFT_VERSION = 'syft:metadata:sourceVersion'
const SYFT_RPM = 'syft:metadata:sourceRpm'
const SRC = /(?:^|:)Src(Name|Version|Release|Epoch)$/

/** Returns the properties of a component of CycloneDX by their names; of several with one name the first. */
export function propertiesOf({ properties }: Fields): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const { name, value } of eachObject(properties)) {
    const known = textOr(name)
    if (known !== '' && textOr(value) !== '' && !values.has(known)) values.set(known, textOr(value))
  }
  return values
}

/** Returns the source package that the properties of Trivy, cdxgen or syft name; null for none. */
export function sourceInProperties(properties: ReadonlyMap<string, string>): SbomSource | null {
  if (properties.size === 0) return null
  const parts = new Map<string, string>()
  for (const [name, value] of properties) {
    const part = name.includes('Src') ? SRC.exec(name)?.[1] : undefined
    if (part !== undefined) parts.set(part, value)
  }
  const name = parts.get('Name') ?? ''
  if (name !== '') return sourceOf(name, versionIn(parts))
  const rpm = properties.get(SYFT_RPM)
  if (rpm !== undefined) return sourceInRpm(rpm)
  const named = SYFT_NAMES.map((one) => properties.get(one)).find((one) => one !== undefined)
  return named === undefined ? null : sourceOf(named, properties.get(SYFT_VERSION) ?? '')
}

function versionIn(parts: ReadonlyMap<string, string>): string {
  const version = parts.get('Version') ?? ''
  if (version === '') return ''
  const release = parts.get('Release') ?? ''
  const epoch = parts.get('Epoch') ?? ''
  const whole = release === '' ? version : `${version}-${release}`
  return /^[1-9]\d*$/.test(epoch) && !/^\d+:/.test(whole) ? `${epoch}:${whole}` : whole
}

/** Returns the source package in the name of a file, such as `openssl-3.0.7-27.el9.src.rpm`; null for another text. */
function sourceInRpm(file: string): SbomSource | null {
  const [, name, version] = /^(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm$/.exec(file.trim()) ?? []
  return name === undefined || version === undefined ? null : sourceOf(name, version)
}

/**
 * Returns the source package that a text of SPDX says: Trivy's `built package from: openssl 3.0.11-1~deb12u2`. Null for any
 * other text: syft writes there where it found the package.
 */
export function sourceInText(sourceInfo: unknown): SbomSource | null {
  const text = textOr(sourceInfo).slice(0, LONGEST_INFO)
  const [, name, version = ''] = /^built package from: (\S+)(?: (\S+))?\s*$/.exec(text) ?? []
  return name === undefined ? null : sourceOf(name, version)
}

/** Characters of a text of SPDX that are looked at. */
const LONGEST_INFO = 5_000

function sourceOf(name: string, version: string): SbomSource {
  return { name: bounded(name.trim()), version: bounded(version.trim()) }
}
