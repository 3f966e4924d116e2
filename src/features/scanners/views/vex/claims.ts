import type { VexDocument } from '../../../../store/catalog/vex.ts'
import { datedBy, latestAt, statedId } from '../../../../documents/vex/apply.ts'
import { productsNamed } from '../../../../documents/vex/coverage.ts'
import { isImage } from '../../../../documents/vex/products.ts'
import { type VexReads, readVexStatements } from '../../../../documents/vex/read.ts'
import { type Statement, type VexName, rulesOut } from '../../../../documents/vex/statement.ts'

/** What a product of a statement says about a vulnerability, as it is kept beside a generation. */
export type Claim = readonly [
  /** The places of the statement in its document, and of the product in the statement. */
  place: number,
  product: number,
  /** 1: it does not rule out. */
  open: 0 | 1,
  /** As `instantOf`. */
  at: string,
  ids: readonly string[],
  /** Package URL of the image; '': the statement names only a component. */
  image: string,
  /** Package URL of the component; '': the image as a whole. */
  component: string,
]

/**
 * Returns the claims of the documents of tags, by their digests: those of `before` where a document is known there, else what it
 * says. One that cannot be read has none, and is tried again.
 */
export async function claimsOf(
  reads: VexReads,
  documents: readonly VexDocument[],
  before: ReadonlyMap<string, readonly Claim[]>,
  pause: () => Promise<void>,
): Promise<Map<string, readonly Claim[]>> {
  const claims = new Map<string, readonly Claim[]>()
  for (const document of documents) {
    const { digest, tags = [] } = document
    if (tags.length === 0) continue
    const known = before.get(digest)
    // All that it says: whether it is believed may change, and what it says does not.
    const whole = { ...document, believedTags: tags }
    const statements = known === undefined ? readVexStatements(reads, whole) : null
    if (known !== undefined) claims.set(digest, known)
    if (statements === null) continue
    // The clock at which it was mirrored: equal documents give equal bytes.
    const latest = latestAt(document.changed * 1000)
    claims.set(
      digest,
      statements.flatMap((one) => claimsIn(one, latest)),
    )
    await pause()
  }
  return claims
}

function claimsIn(statement: Statement, latest: string): Claim[] {
  const { status, products, vulnerabilities, place } = statement
  const ids = [...new Set(vulnerabilities.map(statedId))]
  const open = rulesOut(status) ? 0 : 1
  const at = datedBy(statement, latest)
  return products.flatMap(({ names, parts }, product) => {
    const claim = (image: string, component: string): Claim => [place, product, open, at, ids, image, component]
    const images = names.filter((name) => productsNamed(name).some(isImage))
    const [image] = images.flatMap(purlsIn)
    if (image === undefined) return parts === null ? names.flatMap(purlsIn).map((purl) => claim('', purl)) : []
    return parts === null ? [claim(image, '')] : parts.flatMap(purlsIn).map((part) => claim(image, part))
  })
}

function purlsIn({ purl }: VexName): string[] {
  return purl === '' ? [] : [purl]
}
