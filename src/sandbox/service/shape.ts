import type { Page } from './paging.ts'

/** `published`: the payloads of the wire facts. `other`: the same content in another plausible form. */
export type Shape = 'published' | 'other'

/** The documents that hang on tags, packages and remediated artifacts. */
export type ArtifactKind = 'sbom' | 'vex' | 'provenance' | 'patches'

/** A page in its envelope; `key` is where the published form keeps the items. */
export function listEnvelope(shape: Shape, key: 'data' | 'tickets', page: Page): object {
  const items = page.entries.map(({ listed }) => listed)
  const { after, before, limit, total } = page
  if (shape === 'published') {
    // The last page says so in all three ways that the wire facts name: "", null, nothing.
    const end = key === 'tickets' ? { after: '' } : before === undefined ? {} : { after: null }
    const next = after === undefined ? end : { after }
    return { [key]: items, cursor: { ...next, before: before ?? null, limit, total_count: total } }
  }
  const next = after === undefined ? {} : { next_cursor: after }
  if (key === 'tickets') return { total, items, ...next }
  return { pagination: { next: after ?? null, previous: before ?? null, total }, results: items }
}

/** What an artifact answer names: fresh URLs, and that of the public key for a provenance. */
export interface ArtifactUrls {
  kind: ArtifactKind
  urls: readonly string[]
  keyUrl?: string
}

/** An artifact answer (wire facts, artifact answers). */
export function artifactEnvelope(shape: Shape, { kind, urls, keyUrl }: ArtifactUrls): object {
  const [url] = urls
  const other = shape === 'other'
  if (kind === 'patches') {
    if (!other) return { patch_files_urls: urls }
    return { patches: urls.map((href, i) => ({ name: `${i + 1}.patch`, href })) }
  }
  if (kind === 'sbom') return other ? { download: { location: url } } : { sbom_file_url: url }
  if (kind === 'vex') return other ? { url } : { vex_file_url: url }
  if (other) return { attestation: { href: url }, verification: { public_key: keyUrl } }
  return { provenance_file_url: url, cosign_public_key_url: keyUrl }
}

/** The versions of a catalog package: a plain list in the published form, keyed otherwise in the other. */
export function versionsEnvelope(
  shape: Shape,
  about: { ecosystem: string; name: string },
  versions: readonly object[],
): object {
  if (shape === 'published') return { ...about, versions }
  return { package: about, results: versions }
}
