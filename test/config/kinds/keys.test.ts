import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { load, refusal, scratch } from '../loading.ts'

const KEY = `ed25519:${Buffer.alloc(32).toString('base64')}`

const refusing = (boxes: Record<string, string>, dir = '/srv/mirror/data'): string =>
  refusal(() =>
    load({
      env: {
        PATCHMIRROR_DATA_DIR: dir,
        PATCHMIRROR_BUNDLE_TRUSTED_KEYS: KEY,
        ...Object.fromEntries(Object.entries(boxes).map(([box, path]) => [`PATCHMIRROR_BUNDLE_${box}`, path])),
      },
    }),
  )

test('an inbox that is the outbox is refused', () => {
  const message = refusing({ INBOX: '/srv/box', OUTBOX: '/srv/box/' })
  expect(message).toMatch(/bundle\.inbox \(env .*\/srv\/box is bundle\.outbox .*its own bundles/)
})

test('an inbox or outbox in the data folder, or around it, is refused, also under another name', () => {
  for (const inbox of ['/srv/mirror/data', '/srv/mirror/data/in', '/srv/mirror', '/'])
    expect(refusing({ INBOX: inbox })).toMatch(/bundle\.inbox .*data\.dir.*contain one another/)
  const folder = scratch()
  mkdirSync(join(folder, 'data'))
  symlinkSync(join(folder, 'data'), join(folder, 'box'))
  expect(refusing({ INBOX: join(folder, 'box') }, join(folder, 'data'))).toContain('one another')
})

test('an inbox and an outbox apart from each other and from the data folder are accepted', () => {
  const env = {
    PATCHMIRROR_BUNDLE_INBOX: '/srv/mirror/data-in',
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: KEY,
  }
  expect(load({ env }).config.bundle.inbox).toBe('/srv/mirror/data-in')
})

test('"!" before the id of a key refuses it, and does not count as a key that is trusted', () => {
  const trusting = (keys: string) => load({ env: { PATCHMIRROR_BUNDLE_TRUSTED_KEYS: keys } }).config.bundle
  expect(trusting(`${KEY},!9F86D081884C7D65`)).toMatchObject({ trustedKeys: [KEY], revokedKeys: ['9f86d081884c7d65'] })
  expect(trusting(KEY)).toMatchObject({ trustedKeys: [KEY], revokedKeys: [] })
  expect(refusal(() => trusting('!9f86'))).toContain('is no key id behind "!"')
  const alone = { PATCHMIRROR_BUNDLE_INBOX: '/srv/box', PATCHMIRROR_BUNDLE_TRUSTED_KEYS: '!9f86d081884c7d65' }
  expect(refusal(() => load({ env: alone }))).toContain('no key is trusted')
})
