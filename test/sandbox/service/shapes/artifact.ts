import type { ArtifactForm } from './forms.ts'

/** The documents that hang on tags, packages and remediated artifacts. */
export type ArtifactKind = 'sbom' | 'vex' | 'provenance' | 'patches'

/** What an artifact answer names: fresh URLs, and that of the public key for a provenance. */
export interface ArtifactUrls {
  kind: ArtifactKind
  urls: readonly string[]
  keyUrl?: string
}

/** The body of an answer that names documents (wire facts, artifact answers). */
export function artifactBody({ form }: ArtifactForm, { kind, urls, keyUrl }: ArtifactUrls): unknown {
  const [url] = urls
  if (form === 'bare') return kind === 'patches' ? urls : url
  const renamed = form !== 'named'
  if (kind === 'patches') {
    if (!renamed) return { patch_files_urls: urls }
    return { patches: urls.map((href, i) => ({ name: `${i + 1}.patch`, href })) }
  }
  if (kind === 'sbom') return renamed ? { download: { location: url } } : { sbom_file_url: url }
  if (kind === 'vex') return renamed ? { url } : { vex_file_url: url }
  if (renamed) return { attestation: { href: url }, verification: { public_key: keyUrl } }
  return { provenance_file_url: url, cosign_public_key_url: keyUrl }
}
