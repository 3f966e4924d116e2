import { seconds } from '../../feed/generate.ts'
import { prose } from '../../feed/text-generator.ts'
import { type Entry, type Origin, digestFor, idFor, randomFor } from './collection.ts'
import { NEWEST } from './tickets.ts'
import { exactly } from '../replies.ts'

/** An image of the catalog; its id is a number in the published form. */
export interface Image {
  id: number | string
  repository: string
  name: string
  registry: string
  tags_count: number
  created_at: string
  updated_at: string
}

/** A tag of an image. Only a remediated one has artifacts (service API, section 2). */
export interface Tag {
  id: string
  name: string
  image: { id: number | string; repository: string }
  digest: string
  remediated: boolean
  created_at: string
  updated_at: string
}

const DAY = 86_400_000

/** Repositories with no, one and two slashes, and one that ends in a word of the paths. */
const REPOSITORIES: readonly string[] = [
  'library/python',
  'library/node',
  'nginx',
  'bitnami/charts/redis',
  'tools/build/tags',
  'library/python-slim',
  'grafana/grafana',
  'prom/prometheus',
  'library/eclipse-temurin',
  'istio/proxyv2',
  'library/golang',
  'library/postgres',
]
const FLAVOURS = ['', '-slim', '-alpine', '-bookworm'] as const

/** Which image the i-th tag belongs to. */
export function imageOfTag(i: number, images: number): number {
  return i % images
}

/** The first images of a seed; `tags` is how many tags there are of all of them. */
export function generateImages(origin: Origin, images: number, tags: number): Entry<Image>[] {
  return Array.from({ length: images }, (_, i) => {
    const own = Math.floor(tags / images) + (i < tags % images ? 1 : 0)
    return generateImage(origin, i, own)
  })
}

/** The i-th image of a seed, with the number of its tags. */
function generateImage(origin: Origin, i: number, tags: number): Entry<Image> {
  const random = randomFor(origin.seed, 'image', i)
  const created = NEWEST - random.between(400, 900) * DAY
  const updated = NEWEST - random.int(300) * DAY
  const repository = repositoryOf(i)
  const listed: Image = {
    id: imageId(origin, i),
    repository,
    name: repository.slice(repository.lastIndexOf('/') + 1),
    registry: 'cr.example.com',
    tags_count: tags,
    created_at: seconds(created),
    updated_at: seconds(updated),
  }
  const detail = {
    description: `${prose(random, 200)} – geprüft ✓ 修復済み`,
    categories: random.chance(0.5) ? ['language', 'base'] : ['application'],
    pull_count: exactly(`9007199254${random.between(740993, 999999)}`),
    popularity: exactly(`${random.int(10)}.0`),
  }
  return { id: String(listed.id), seq: i, lastModified: updated, listed, detail }
}

/** A number where integers are the form. */
function imageId(origin: Origin, i: number): number | string {
  const id = idFor(origin, 'image', i)
  return /^\d+$/.test(id) ? Number(id) : id
}

function repositoryOf(i: number): string {
  return REPOSITORIES[i] ?? `team-${i % 7}/service-${i}`
}

/** The first tags of a seed, spread over its images; none without an image. */
export function generateTags(
  origin: Origin,
  counts: { images: number; tags: number; avrs: number },
): Entry<Tag>[] {
  if (counts.images === 0) return []
  return Array.from({ length: counts.tags }, (_, i) => generateTag(origin, i, counts))
}

/** The i-th tag of a seed. Details name the AVR it came from, when there is one. */
export function generateTag(
  origin: Origin,
  i: number,
  { images, avrs }: { images: number; avrs: number },
): Entry<Tag> {
  const random = randomFor(origin.seed, 'tag', i)
  const image = imageOfTag(i, images)
  const nth = Math.floor(i / images)
  const created = NEWEST - random.between(100, 400) * DAY
  const updated = created + random.int(90) * DAY
  const listed: Tag = {
    id: idFor(origin, 'tag', i),
    name: `${random.between(1, 9)}.${nth}${random.pick(FLAVOURS)}`,
    image: { id: imageId(origin, image), repository: repositoryOf(image) },
    digest: digestFor(random),
    remediated: i % 20 !== 17,
    created_at: seconds(created),
    updated_at: seconds(updated),
  }
  const detail = {
    arch: random.pick(['amd64', 'arm64']),
    size_bytes: random.chance(0.1) ? exactly('9007199254740995') : random.int(900_000_000),
    vulnerability_counts: { critical: 0, high: random.int(3), medium: random.int(20) },
    labels: { maintainer: 'Zoë Ångström', 'org.opencontainers.image.version': listed.name },
    ...(i < avrs ? { avr_id: idFor(origin, 'avr', i) } : {}),
  }
  return { id: listed.id, seq: i, lastModified: updated, listed, detail }
}
