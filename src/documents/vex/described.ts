import type { InputSbom } from '../sboms/sbom.ts'
import type { DescribedImage } from './coverage.ts'

/** What an SBOM describes, and which SBOM it is. */
type Described = Pick<DescribedImage, 'subjects' | 'serial'>

const LINK = /^urn:cdx:(.*)\/(.*)$/s

/** Returns what is stored of an SBOM: the package URLs of what it describes, and how other documents link to it. */
export function writeDescribed({ subjects, serial }: Pick<InputSbom, 'subjects' | 'serial'>): readonly string[] {
  const others = subjects.filter((one) => !LINK.test(one))
  return serial === undefined ? others : [...others, `urn:cdx:${serial.serial}/${serial.version}`]
}

/** Returns what is stored of an SBOM. */
export function readDescribed(stored: readonly string[]): Described {
  const subjects = stored.filter((one) => !LINK.test(one))
  const [, serial, version] = stored.map((one) => LINK.exec(one)).find((one) => one !== null) ?? []
  if (serial === undefined || version === undefined) return { subjects, serial: null }
  return { subjects, serial: { serial, version } }
}
