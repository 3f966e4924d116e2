import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { checkImages } from '../../../src/features/images/check.ts'
import { loadQuick } from '../../support/limits.ts'
import { startRegistry } from '../../support/registry.ts'

let docker = ''

beforeEach(() => {
  docker = mkdtempSync(join(tmpdir(), 'patchmirror-docker-'))
  vi.stubEnv('DOCKER_CONFIG', docker)
  return () => {
    vi.unstubAllEnvs()
    rmSync(docker, { recursive: true })
  }
})

const settings = () => loadQuick({ env: { PATCHMIRROR_DATA_DIR: docker }, cwd: docker }).config

function imageOf(repository: string, at: number) {
  return { repository, tag: null, digest: `sha256:${String(at).padStart(64, '0')}` }
}

/** Returns what is true of the first requests of each path. */
function createBusy(times: number): (url: string) => boolean {
  const counts = new Map<string, number>()
  return (url) => {
    const count = (counts.get(url) ?? 0) + 1
    counts.set(url, count)
    return count <= times
  }
}

describe('a registry', () => {
  test('that asks to wait is asked again then, and no more where it goes on to do so', async () => {
    const registry = await startRegistry()
    const config = settings()
    const images = Array.from({ length: 14 }, (_, at) => imageOf(at < 3 ? 'one' : `other${at}`, at))
    for (const { digest } of images) registry.manifests.set(digest, Buffer.from('{}'))
    const waits: number[] = []
    const options = { delay: () => Promise.resolve(), onWait: (ms: number): void => void waits.push(ms) }
    const asking = (times: number, status: number, seconds: number): void => {
      const isBusy = createBusy(times)
      const busy = { 'retry-after': String(seconds) }
      registry.seen.length = 0
      registry.behave({ own: (url, response) => isBusy(url) && response.writeHead(status, busy).end() === response })
    }
    for (const status of [429, 503]) {
      asking(1, status, 7)
      const found = await checkImages(config, registry.host, images, options)
      expect([...found.values()]).toEqual(images.map(() => ({ is: 'there' })))
      expect(Math.min(...waits.splice(0))).toBeGreaterThanOrEqual(7000)
    }
    const answers = async () => [...(await checkImages(config, registry.host, images, options)).values()]
    const silent = expect.arrayContaining([
      expect.objectContaining({
        is: 'not known',
        why: expect.stringMatching(/status 503; so for 3 requests in a row: no more were made$/) as string,
      }),
    ]) as unknown
    // The rule of upstream: so many attempts, and none after so long a pause.
    asking(Infinity, 503, 7)
    expect(await answers()).toEqual(silent)
    expect(registry.seen.length).toBeLessThanOrEqual(10 * (config.upstream.retries + 1))
    waits.length = 0
    asking(Infinity, 503, 3600)
    expect(await answers()).toEqual(silent)
    expect(registry.seen.length).toBeLessThanOrEqual(10)
    expect(waits).toEqual([])
  })

  test('that asks to wait again and again is waited for no longer than some hours', async () => {
    const registry = await startRegistry()
    const config = settings()
    let count = 0
    const busy = { 'retry-after': '300' }
    registry.behave({ own: (_, response) => ++count % 2 === 1 && response.writeHead(429, busy).end() === response })
    const images = Array.from({ length: 120 }, (_, at) => imageOf('one', at))
    const waits: number[] = []
    const found = await checkImages(config, registry.host, images, {
      delay: () => Promise.resolve(),
      onWait: (ms) => void waits.push(ms),
    })
    expect(waits.length).toBeLessThanOrEqual(96)
    expect([...found.values()].filter((one) => one.is === 'not known').length).toBeGreaterThan(0)
  })

  test('that gives no token because of too many requests is not said to refuse the credential', async () => {
    const registry = await startRegistry({
      own: (url, response) => {
        const isToken = url.startsWith('/busy')
        const headers = { 'www-authenticate': `Bearer realm="http://${registry.host}/busy",service="test"` }
        return response.writeHead(isToken ? 429 : 401, isToken ? {} : headers).end() === response
      },
    })
    const config = settings()
    const found = await checkImages(config, registry.host, [imageOf('one', 1)])
    expect([...found.values()]).toMatchObject([
      { code: 'upstream_status', why: `${registry.host} gives no token: status 429` },
    ])
  })
})
