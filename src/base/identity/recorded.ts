import { type Fields, fieldsOf } from '../json/objects.ts'
import { remember } from '../text.ts'
import { schemaSpelling } from '../versions/ecosystems.ts'
import { releaseIn } from './identity.ts'
import { packageOf } from './package.ts'
import { parsePurl } from './purl.ts'

/** A package as a record names it. */
interface RecordedPackage {
  /** As the OSV schema writes it. */
  readonly ecosystem: string
  readonly name: string
}

/**
 * Returns the package that an element of a record's `affected` names: by its ecosystem, in whatever case, and its name; where one of
 * these is missing, by its package URL. Null for a package that is not named so.
 */
export function recordedPackage(affected: Fields): RecordedPackage | null {
  const { ecosystem, name, purl } = fieldsOf(affected['package'])
  if (typeof ecosystem === 'string' && ecosystem !== '' && typeof name === 'string')
    return { ecosystem: schemaSpelling(ecosystem), name }
  return typeof purl === 'string' ? packageInPurl(purl) : null
}

/** Package URLs that are remembered: a record is asked about each of its packages, again and again. */
const packageInPurl = remember(readPackage, { results: 1_000, characters: 300 })

function readPackage(purl: string): RecordedPackage | null {
  try {
    const url = parsePurl(purl)
    const found = packageOf(url)
    if ('unrecorded' in found) return null
    return { ecosystem: releaseIn(url, found.ecosystem) ?? found.ecosystem, name: found.name }
  } catch {
    return null
  }
}
