import { MirrorError } from '../../base/errors.ts'

/** An image to copy: its repository as it is to be named, its tag, and the digest that the catalog has of it. */
export interface CatalogImage {
  readonly repository: string
  readonly tag: string | null
  readonly digest: string
}

/** What is written for a tool. `snapshot`: of the catalog, hex. */
export type WriteImages = (images: readonly CatalogImage[], snapshot: string) => readonly string[]

/** Returns how an image is named: exactly this one, whatever its tag names later. */
export function pinned({ repository, digest }: Pick<CatalogImage, 'repository' | 'digest'>): string {
  return `${repository}@${digest}`
}

/** Writes for each tool, by its name. */
export const IMAGE_FORMATS: Readonly<Record<string, WriteImages>> = {
  text: (images) => images.map((one) => pinned(one)),
  skopeo: writeSkopeo,
  hauler: (images, snapshot) => [
    'apiVersion: content.hauler.cattle.io/v1',
    'kind: Images',
    'metadata:',
    `  name: ${nameOf(snapshot)}`,
    'spec:',
    ...sequence('  images:', images, (name) => `    - name: ${name}`),
  ],
  zarf: (images, snapshot) => [
    'kind: ZarfPackageConfig',
    'metadata:',
    `  name: ${nameOf(snapshot)}`,
    'components:',
    '  - name: images',
    '    required: true',
    ...sequence('    images:', images, (name) => `      - ${name}`),
  ],
  'oc-mirror': (images) => [
    'kind: ImageSetConfiguration',
    'apiVersion: mirror.openshift.io/v2alpha1',
    'mirror:',
    ...sequence('  additionalImages:', images, (name) => `    - name: ${name}`),
  ],
}

/** Lists for `skopeo sync --src yaml`: by registry and repository. */
function writeSkopeo(images: readonly CatalogImage[]): string[] {
  const lines: string[] = []
  for (const [host, ofHost] of Map.groupBy(images, hostOf)) {
    lines.push(`${JSON.stringify(host)}:`, '  images:')
    for (const [repository, ofRepository] of Map.groupBy(ofHost, (one) => one.repository.slice(host.length + 1))) {
      lines.push(`    ${JSON.stringify(repository)}:`)
      for (const digest of new Set(ofRepository.map((one) => one.digest)))
        lines.push(`      - ${JSON.stringify(digest)}`)
    }
  }
  return lines
}

/** Returns the lines of a list of all images. Without images it is an empty list: a key alone is null, which Zarf refuses. */
function sequence(key: string, images: readonly CatalogImage[], line: (name: string) => string): string[] {
  const names = named(images)
  return names.length === 0 ? [`${key} []`] : [key, ...names.map(line)]
}

/** Returns the names of all images, each once, as text of YAML. Throws `usage` where they name no registry. */
function named(images: readonly CatalogImage[]): string[] {
  for (const one of images) hostOf(one)
  return [...new Set(images.map((one) => JSON.stringify(pinned(one))))]
}

function nameOf(snapshot: string): string {
  return `patchmirror-${snapshot.slice(0, 12)}`
}

/** Returns the registry that a name begins with. Throws `usage` where there is none, as tools then take another one. */
function hostOf({ repository }: CatalogImage): string {
  const host = registryIn(repository)
  if (host !== null) return host
  throw new MirrorError(
    'usage',
    `${repository} names no registry, and the catalog does not say which has it: give --rewrite =HOST/, such as --rewrite =registry.example.com/`,
  )
}

/** Returns an image with a name without the registry at its beginning, as it is below the registry that it is copied to. */
export function withoutRegistry<Image extends CatalogImage>(image: Image): Image {
  const host = registryIn(image.repository)
  return host === null ? image : { ...image, repository: image.repository.slice(host.length + 1) }
}

function registryIn(repository: string): string | null {
  const [host = '', ...rest] = repository.split('/')
  return rest.length > 0 && (/[.:]/.test(host) || host === 'localhost') ? host : null
}
