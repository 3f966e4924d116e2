import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { countCalls, createStoreCounters } from '../../../../src/features/fleet/objects/counted-store.ts'
import { createFolderStore } from '../../../../src/features/fleet/objects/folder-store.ts'
import { readObject } from '../../../../src/features/fleet/objects/object-store.ts'
import { openObjectStore } from '../../../../src/features/fleet/objects/open-store.ts'
import { longTest, test } from '../../../support/tables.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'patchmirror-folder-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const urlOf = (path: string): string => pathToFileURL(path).href

/** Starts a process that increments the number of a folder store. */
function startCounting(url: string, times: number): ChildProcess {
  const script = 'test/support/fleet/increment.ts'
  const child = spawn(process.execPath, [script, url, String(times)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

longTest('processes that replace one object lose no update, also after one of them was killed', async () => {
  const url = urlOf(folder())
  const store = createFolderStore(url)
  await store.put('number', Buffer.from('0'))
  const killed = startCounting(url, 1_000_000)
  let written = 0
  killed.stdout?.on('data', (dots: Buffer) => (written += dots.length))
  await once(killed.stdout ?? killed, 'data')
  const others = [startCounting(url, 20), startCounting(url, 20)]
  await Promise.all(others.map((child) => once(child.stdout ?? child, 'data')))
  killed.kill('SIGKILL')
  await once(killed, 'close')
  const codes = await Promise.all(
    others.map(async (child) => {
      child.stdout?.resume()
      return child.exitCode ?? ((await once(child, 'exit')) as [number])[0]
    }),
  )
  expect(codes).toEqual([0, 0])
  const number = Number((await readObject(store, 'number', 100))?.bytes.toString())
  // One that was killed may have written without having reported it.
  expect([written + 40, written + 41]).toContain(number)
  store.close()
})

test('drafts that a process left are removed when a day has elapsed, whatever their dates, and are no objects', async () => {
  const path = folder()
  const drafts = join(path, '.drafts')
  mkdirSync(drafts)
  for (const name of ['left', 'growing']) writeFileSync(join(drafts, name), 'half')
  const before = Date.now() / 1000 - 400 * 86_400
  for (const name of ['left', 'growing']) utimesSync(join(drafts, name), before, before)
  let hours = 0
  const store = createFolderStore(urlOf(path), () => hours * 3_600_000)
  const putAfter = async (more: number): Promise<string[]> => {
    hours += more
    await store.put('k', Buffer.from('x'))
    return readdirSync(drafts).sort()
  }
  expect(await putAfter(0)).toEqual(['growing', 'left'])
  writeFileSync(join(drafts, 'growing'), 'more')
  expect(await putAfter(23)).toEqual(['growing', 'left'])
  expect(await putAfter(1)).toEqual(['growing'])
  expect(await putAfter(24)).toEqual([])
  const keys: string[] = []
  for await (const { key } of store.list('')) keys.push(key)
  expect(keys).toEqual(['k'])
})

test('objects have the permissions of the folder, whatever the umask', async () => {
  const path = folder()
  chmodSync(path, 0o2770)
  const umask = process.umask(0o077)
  onTestFinished(() => void process.umask(umask))
  const store = createFolderStore(urlOf(path))
  await store.put('gen/1', Buffer.from('x'))
  store.close()
  const modes = ['gen', 'gen/1', '.drafts', '.lock'].map((name) => statSync(join(path, name)).mode & 0o7777)
  expect(modes).toEqual([0o2770, 0o660, 0o2770, 0o660])
})

test('a folder that is missing is reported as that, and never as an object that is missing', async () => {
  const store = createFolderStore(urlOf(join(folder(), 'not-mounted')))
  const refusal = {
    outcome: 'refused',
    message: expect.stringMatching(/no such folder. Mount it/) as string,
  }
  await expect(store.get('k')).rejects.toMatchObject(refusal)
  await expect(store.head('k')).rejects.toMatchObject(refusal)
  await expect(store.put('k', Buffer.from('x'))).rejects.toMatchObject(refusal)
  await expect(store.putIfAbsent('k', Buffer.from('x'))).rejects.toMatchObject(refusal)
  await expect(store.delete('k')).rejects.toMatchObject(refusal)
  await expect(store.list('').next()).rejects.toMatchObject(refusal)
})

test('a symbolic link in place of an object is not followed', async () => {
  const path = folder()
  const secret = join(folder(), 'secret')
  writeFileSync(secret, 'private')
  symlinkSync(secret, join(path, 'head.json'))
  const store = createFolderStore(urlOf(path))
  await expect(store.get('head.json')).rejects.toMatchObject({ code: 'fleet' })
  await store.put('head.json', Buffer.from('public'))
  expect((await readObject(store, 'head.json', 100))?.bytes.toString()).toBe('public')
})

test('a symbolic link in place of a folder of objects is refused by every call, and nothing behind it is touched', async () => {
  const path = folder()
  const elsewhere = folder()
  writeFileSync(join(elsewhere, 'k'), 'private')
  utimesSync(join(elsewhere, 'k'), 1, 1)
  for (const name of ['bundles', '.drafts']) symlinkSync(elsewhere, join(path, name))
  const store = createFolderStore(urlOf(path))
  const refusal = {
    code: 'fleet',
    outcome: 'refused',
    message: expect.stringContaining('symbolic link') as string,
  }
  await expect(store.get('bundles/k')).rejects.toMatchObject(refusal)
  await expect(store.delete('bundles/k')).rejects.toMatchObject(refusal)
  await expect(store.list('bundles/').next()).rejects.toMatchObject(refusal)
  await expect(store.put('lease.json', Buffer.from('x'))).rejects.toMatchObject(refusal)
  unlinkSync(join(path, '.drafts'))
  await expect(store.putIfAbsent('bundles/new', Buffer.from('x'))).rejects.toMatchObject(refusal)
  expect(readdirSync(elsewhere)).toEqual(['k'])
})

test('a named pipe in place of an object is no object, and nothing waits for it', async () => {
  const path = folder()
  spawnSync('mkfifo', [join(path, 'head.json')])
  const store = createFolderStore(urlOf(path))
  expect(await store.get('head.json')).toBeNull()
  expect(await store.head('head.json')).toBeNull()
})

test('calls and bytes are counted by verb and outcome', async () => {
  const counters = createStoreCounters()
  const url = urlOf(folder())
  const settings = { endpoint: null, region: 'us-east-1', pathStyle: true, caFile: null }
  const store = await openObjectStore({ ...settings, url }, counters)
  const body = Buffer.from('12345')
  await store.putIfAbsent('k', body)
  await store.putIfAbsent('k', body)
  await store.get('missing')
  await readObject(store, 'k', 10)
  await expect(store.get('k', { maxBytes: 1 })).rejects.toThrow(/more than 1/)
  await expect(openObjectStore({ ...settings, url: null })).rejects.toThrow(/fleet\.url: not set/)
  const lost = countCalls(createFolderStore(urlOf(join(folder(), 'missing'))), counters)
  await expect(lost.delete('k')).rejects.toThrow()
  expect(counters.requests.put_if_absent).toMatchObject({ ok: 1, none: 1 })
  expect(counters.requests.get).toEqual({ ok: 1, none: 1, refused: 1, unknown: 0, retried: 0 })
  expect(counters.requests.delete.refused).toBe(1)
  expect(counters.bytes).toEqual({ up: 5, down: 5 })
})
