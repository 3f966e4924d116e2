import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { imagesCommand } from '../../../src/features/images/command.ts'
import { catalogEnv } from '../../support/catalog/mirror.ts'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { createBench } from '../../support/mirror.ts'
import { commandHost } from '../../support/hosted.ts'
import { sharedBench } from '../../support/shared-bench.ts'
import { startRegistry } from '../../support/registry.ts'
import { spoken } from '../bundles/error-messages.ts'

const run = commandHost()

/** A catalog of three tags of one image. */
const CATALOG = {
  sandbox: { records: 1, service: { images: 1, tags: 3, packages: 1, tickets: 1 } },
  envOf: catalogEnv,
  env: { PATCHMIRROR_CATALOG_SCOPE: 'all' },
}

/** A mirror of it; all tests but one read it. */
const mirrored = sharedBench(CATALOG, 'catalog')

async function say(options: Parameters<typeof imagesCommand>[0], dir?: string) {
  const data = dir ?? (await mirrored()).dir
  const docker = join(data, 'docker')
  mkdirSync(docker, { recursive: true })
  return spoken({ PATCHMIRROR_DATA_DIR: data, DOCKER_CONFIG: docker }, () => imagesCommand(options))
}

interface Listed {
  snapshot: string
  since: string | null
  untracked: string[]
  images: { repository: string; tag: string; digest: string; hasSbom: boolean; is?: string; why?: string }[]
}

async function listed(options: object = {}, dir?: string): Promise<Listed> {
  return JSON.parse((await say({ json: true, ...options }, dir)).said) as Listed
}

/** The service's own list of tags. */
async function upstreamTags({ url }: { url: string }) {
  const headers = { authorization: `Basic ${btoa(`${SANDBOX_KEYS.admin}:`)}` }
  const answer = await fetch(`${url}/v1/tags/`, { headers })
  return (await answer.json()) as { data: { id: string; digest: string }[] }
}

describe('the images of the catalog', () => {
  longTest('are listed by their digests, with the snapshot that they are of', async () => {
    const { snapshot, images } = await listed()
    expect(images).toHaveLength(3)
    const { code, said } = await say({})
    expect(code).toBe(0)
    const [first, ...rest] = said.trim().split('\n')
    expect(first).toMatch(new RegExp(`^# catalog ${snapshot}, as of `))
    expect(rest).toEqual(images.map(({ repository, digest }) => `${repository}@${digest}`))
    for (const line of rest) expect(line).toMatch(/@sha256:[\da-f]{64}$/)
  })

  longTest('are written for tools with the registry that --rewrite names, and for none without', async () => {
    const { images } = await listed()
    const [one] = images
    const names = images.map(({ repository, digest }) => `r.example/mirror/${repository}@${digest}`)
    for (const format of ['hauler', 'zarf', 'oc-mirror']) {
      const { said } = await say({ format, rewrite: '=r.example/mirror/' })
      for (const name of names)
        expect(said).toContain(`- ${JSON.stringify(name)}`.replace('- "', format === 'zarf' ? '- "' : '"'))
      expect(await say({ format })).toMatchObject({ code: 'usage' })
    }
    const skopeo = await say({ format: 'skopeo', rewrite: '=r.example/mirror/' })
    const lines = skopeo.said.trim().split('\n').slice(1)
    expect(lines.slice(0, 4)).toEqual([
      '"r.example":',
      '  images:',
      `    ${JSON.stringify(`mirror/${one?.repository}`)}:`,
      `      - ${JSON.stringify(one?.digest)}`,
    ])
    const moved = await listed({ rewrite: `${one?.repository}=other/name` })
    expect(moved.images.every(({ repository }) => repository === 'other/name')).toBe(true)
  })

  test('of an unknown format, rule or place are refused with an example', async () => {
    expect((await say({ format: 'x' })).said).toMatch(/--format takes one of: text, skopeo, hauler, zarf, oc-mirror/)
    expect((await say({ format: 'constructor' })).said).toMatch(/--format takes one of/)
    expect((await say({ rewrite: 'a' })).said).toMatch(/--rewrite takes FROM=TO/)
    for (const check of ['https://r.example', 'r.example/A', '/mirror'])
      expect((await say({ check })).said).toContain(
        `--check takes HOST or HOST/PREFIX, such as registry.example.com/mirror, not ${check}`,
      )
  })

  longTest('of the tags that are new or changed since a snapshot or a time are listed with --since', async () => {
    const mirror = await createBench(CATALOG)
    try {
      await mirror.run('catalog')
      const { snapshot: first } = await listed({}, mirror.dir)
      expect(await listed({ since: first }, mirror.dir)).toMatchObject({ since: first, images: [], untracked: [] })
      const { service } = mirror.sandbox
      const added = service.addTag()
      await mirror.run('catalog')
      const since = await listed({ since: first }, mirror.dir)
      expect(since.images).toHaveLength(1)
      const { said } = await say({ since: first, format: 'skopeo', rewrite: '=r.example/' }, mirror.dir)
      expect(said).toMatch(
        new RegExp(`^# catalog \\w+, as of \\S+: tags that are new or changed since catalog ${first}\n`),
      )
      const digest = `sha256:${'ab'.repeat(32)}`
      service.change('tags', added, { digest })
      await mirror.run('catalog')
      expect(await listed({ since: since.snapshot }, mirror.dir)).toMatchObject({ images: [{ digest }], untracked: [] })
      // Nothing was stored a week ago: all of it is new since.
      expect(await listed({ since: '7d' }, mirror.dir)).toMatchObject({
        since: null,
        images: { length: 4 },
        notes: [expect.stringMatching(/^the catalog here is younger than --since 7d: all of it is listed$/)],
      })
      const unknown = await say({ since: 'abcdef012345' }, mirror.dir)
      expect(unknown).toMatchObject({
        code: 3,
        said: expect.stringMatching(/list all of it, without --since/) as string,
      })
      expect(await say({ since: '2020-01-01x' }, mirror.dir)).toMatchObject({ code: 'usage' })
    } finally {
      await mirror.close()
    }
  })

  test('of a tag that moved while a run read it are both listed, and what its list names later is no news', async () => {
    const mirror = await createBench(CATALOG)
    try {
      const old = `sha256:${'ab'.repeat(32)}`
      const list = await upstreamTags(mirror.sandbox)
      const [moved] = list.data
      const before = { ...list, data: [{ ...moved, digest: old }, ...list.data.slice(1)] }
      mirror.sandbox.faults.set('/v1/tags/', { kind: 'body', body: JSON.stringify(before) })
      await mirror.run('catalog')
      const first = await listed({}, mirror.dir)
      expect(first.images.slice(0, 2).map(({ digest }) => digest)).toEqual([old, moved?.digest])
      mirror.sandbox.faults.clear()
      await mirror.run('catalog')
      expect(await listed({ since: first.snapshot }, mirror.dir)).toMatchObject({ since: first.snapshot, images: [] })
    } finally {
      await mirror.close()
    }
  })

  longTest('of a tag are those of its platforms, or its index, and never what they are built on', async () => {
    const mirror = await createBench(CATALOG)
    try {
      const [base, arm, amd, index] = ['aa', 'bb', 'cc', 'dd'].map((byte) => `sha256:${byte.repeat(32)}`)
      const list = await upstreamTags(mirror.sandbox)
      const of = async (named: object): Promise<string[]> => {
        const [one = { id: '', digest: '' }, ...others] = list.data
        const { digest: _, ...first } = one
        mirror.sandbox.faults.clear()
        const body = JSON.stringify({ ...list, data: [{ base_image_digest: base, ...first, ...named }, ...others] })
        mirror.sandbox.faults.set('/v1/tags/', { kind: 'body', body })
        const details = JSON.stringify({ ...first, ...named })
        mirror.sandbox.faults.set(`/v1/tags/${first.id}`, { kind: 'body', body: details })
        await mirror.run('catalog')
        return (await listed({}, mirror.dir)).images.slice(0, -2).map(({ digest }) => digest)
      }
      expect(await of({ digest: amd })).toEqual([amd])
      expect(await of({ digests: { arm64: arm, amd64: amd } })).toEqual([arm, amd])
      expect(await of({ digests: [arm, amd], index_digest: index })).toEqual([index])
    } finally {
      await mirror.close()
    }
  })

  longTest('are not listed without a tag whose entry is damaged, and the error says what to do', async () => {
    const mirror = await createBench(CATALOG)
    try {
      await mirror.run('catalog')
      const db = openWriter(mirror.dir)
      db.exec("UPDATE catalog_entry SET body = CAST('{' AS BLOB)")
      db.close()
      const env = { PATCHMIRROR_DATA_DIR: mirror.dir }
      for (const words of [['images'], ['list', 'tags']]) {
        const { code, err } = await run(words, env, mirror.dir)
        expect([code, err]).toEqual([
          1,
          expect.stringMatching(/^patchmirror: a stored item is damaged: .*doctor --data/),
        ])
      }
    } finally {
      await mirror.close()
    }
  })

  test('are not known where no catalog is mirrored', async () => {
    const empty = await createBench({ sandbox: { records: 1 } })
    await empty.run('feeds')
    expect(await say({}, empty.dir).finally(() => empty.close())).toMatchObject({ code: 3 })
  })
})

describe('a registry', () => {
  test('that lacks an image is told apart from one that has it, and from one that does not answer', async () => {
    const { images } = await listed()
    const registry = await startRegistry()
    const check = `${registry.host}/mirror`
    for (const { digest } of images.slice(0, 2)) registry.manifests.set(digest, Buffer.from('{}'))
    const found = await say({ check })
    expect(found.code).toBe(3)
    expect(found.said).toMatch(/catalog \w+: 3 images: 2 in the registry, 1 missing, 0 not known/)
    expect(found.said).toMatch(new RegExp(`\nmissing *\n\\S+@${images[2]?.digest}`))
    expect(registry.seen.filter(({ method }) => method === 'HEAD')).toHaveLength(3)
    const rest = await say({ check, format: 'hauler', rewrite: '=r.example/' })
    expect(rest.code).toBe(3)
    expect(rest.said).toContain(', without those in the registry\n')
    expect(rest.said.match(/@sha256:[\da-f]{64}/g)).toEqual([`@${images[2]?.digest}`])
    // On the command line too, the sum is what is printed without --format.
    const dir = (await mirrored()).dir
    const typed = await run(['images', '--check', check], { PATCHMIRROR_DATA_DIR: dir, DOCKER_CONFIG: dir }, dir)
    expect(typed).toMatchObject({ code: 3, out: expect.stringMatching(/: 2 in the registry, 1 missing, 0/) as string })
    registry.manifests.set(images[2]?.digest ?? '', Buffer.from('{}'))
    expect((await say({ check })).code).toBe(0)
    // A digest that is not named, or another one, is not that of the bytes.
    for (const digest of [null, `sha256:${'0'.repeat(64)}`]) {
      registry.behave({ digest })
      const { said } = await say({ check })
      expect(said).toMatch(/0 in the registry, 0 missing, 3 not known/)
      expect(said).toMatch(/not known for 1 image: .*a manifest of the digest sha256:44136fa/)
    }
  })

  test('is summed up by the command that names no format', async () => {
    const registry = await startRegistry()
    const { dir } = await mirrored()
    const env = { PATCHMIRROR_DATA_DIR: dir, DOCKER_CONFIG: dir }
    const { code, out } = await run(['images', '--check', `${registry.host}/mirror`], env, dir)
    expect([code, out]).toEqual([3, expect.stringMatching(/3 images: 0 in the registry, 3 missing, 0 not known/)])
  })

  test('is that of the settings where --check names none, and an error where the settings name none either', async () => {
    const registry = await startRegistry()
    const { dir } = await mirrored()
    const env = { PATCHMIRROR_DATA_DIR: dir, DOCKER_CONFIG: dir }
    const place = `${registry.host}/mirror`
    const words = ['images', '--check', '--json']
    const { code, out } = await run(words, { ...env, PATCHMIRROR_IMAGES_REGISTRY: place }, dir)
    const { images } = JSON.parse(out) as Listed
    expect([code, images.map(({ is }) => is)]).toEqual([3, ['missing', 'missing', 'missing']])
    expect(registry.seen.map(({ url }) => url)).toContain(
      `/v2/mirror/${images[0]?.repository}/manifests/${images[0]?.digest}`,
    )
    const none = await run(words, env, dir)
    expect(none.code).toBe(2)
    expect(none.err).toContain('--check names no registry, and images.registry is not set: set it, or name HOST/PREFIX')
  })

  test('that is none, or does not let anybody in, does not say that images are missing', async () => {
    const registry = await startRegistry({ ping: 404 })
    const states = async (): Promise<(string | undefined)[]> =>
      (await listed({ check: `${registry.host}/mirror` })).images.map(({ is }) => is)
    expect(await states()).toEqual(['not known', 'not known', 'not known'])
    const { said: once } = await say({ check: `${registry.host}/mirror` })
    expect(once).toContain(`\nnot known for 3 images: ${registry.host}: it does not answer as a registry: status 404\n`)
    const { snapshot } = await listed()
    const none = await say({ check: `${registry.host}/mirror`, since: snapshot })
    expect(none.said).toContain(`: 0 images of tags new or changed since ${snapshot.slice(0, 12)}: 0 in the registry`)
    registry.behave({ login: { user: 'ann', password: 'x', scheme: 'bearer' } })
    expect(await states()).toEqual(['not known', 'not known', 'not known'])
    const unnamed = await say({ check: `${registry.host}/mirror`, rewrite: '=Not A Name/' })
    expect(unnamed.said).toMatch(/0 in the registry, 0 missing, 3 not known/)
    const { said } = await say({ check: '127.0.0.1:1/mirror' })
    expect(said).toMatch(/^not known for 3 images: .*cannot be reached/m)
    const all = await say({ check: '127.0.0.1:1/mirror', format: 'text' })
    expect(all.said.match(/@sha256:/g)).toHaveLength(3)
    expect(all.said).toMatch(/of 3 images it is not known .* they are listed \(127\.0\.0\.1:1 cannot be reached: .+\)/)
    writeFileSync(join((await mirrored()).dir, 'docker', 'config.json'), '{')
    expect(await say({ check: `${registry.host}/mirror` })).toMatchObject({ code: 'config' })
  })
})
