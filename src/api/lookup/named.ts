import { hasDigest, isNamed, namesOf, textsWithin } from '../../domain/image-reference.ts'
import { readQuestion } from '../../query/query.ts'
import type { Reads } from '../../store/reads.ts'

/** Returns ids of records that begin with a text, as it is written and in upper case; at most `limit`. */
export function findRecordIds(osv: Reads['osv'], text: string, limit: number): string[] {
  const forms = [...new Set([text, text.toUpperCase()])]
  const ids = new Set(forms.flatMap((form) => osv.listIdsFrom(form, limit)))
  return [...ids].slice(0, limit)
}

/**
 * Returns the package of a purl in OSV's terms; null for a type of purl that no ecosystem of OSV has. Throws `bad_request`
 * for what is no purl.
 */
export function packageOfPurl(
  purl: string,
): { readonly ecosystem: string; readonly name: string; readonly version: string } | null {
  const { ecosystem, name, version } = readQuestion({ package: { purl } })
  return ecosystem === null ? null : { ecosystem: ecosystem.name, name, version }
}

type NamedItem = ReturnType<Reads['catalog']['listNaming']>[number]

/** Items with the same tag, such as `latest`, that are compared with a reference. */
const MOST_CANDIDATES = 5000

/**
 * Returns listed items that name a text: a tag, a digest, a repository, or an image reference (`repository:tag`, with or
 * without a registry's host, `repository@digest`); at most `limit`.
 */
export function findItems(catalog: Reads['catalog'], text: string, limit: number): NamedItem[] {
  const exact = catalog.listNaming(text, limit)
  if (exact.length > 0) return exact
  const names = namesOf({ ...NO_NAMES, subject: text })
  const key = names.digest ?? names.tag
  if (key === null || key === text) return []
  const candidates = catalog
    .listNaming(key, MOST_CANDIDATES)
    .map((item) => ({ item, texts: textsWithin(JSON.parse(item.body.toString('utf8'))) }))
    .filter(({ texts }) => names.digest === null || hasDigest(texts, names.digest))
  const named = candidates.filter(({ texts }) => isNamed(texts, names))
  // `python:3.12` for `library/python:3.12`
  const short = candidates.filter(({ texts }) =>
    texts.some((one) => one.endsWith(`/${names.repository}`)),
  )
  return (named.length > 0 ? named : short).slice(0, limit).map(({ item }) => item)
}

const NO_NAMES = { repository: null, tag: null, digest: null, arch: null }
