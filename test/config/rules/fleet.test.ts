import { writeFileSync } from 'node:fs'
import { generateKeyPairSync } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { load, refusal, scratch } from '../loading.ts'

/** Settings of a fleet by their names; values of `bundle` are given as whole variables. */
const fleet = (values: Record<string, string>, more: Record<string, string> = {}) => {
  const named = Object.entries(values).map(([name, value]) => [`PATCHMIRROR_FLEET_${name}`, value])
  return { ...Object.fromEntries(named), ...more } as Record<string, string>
}

function keys(): { signing: Record<string, string>; trusted: Record<string, string> } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const file = join(scratch(), 'key')
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64')
  return {
    signing: { PATCHMIRROR_BUNDLE_SIGNING_KEYS: file },
    trusted: { PATCHMIRROR_BUNDLE_TRUSTED_KEYS: `ed25519:${raw}` },
  }
}

test.each([
  ['s3://bucket-1/some/prefix.v2/', 's3://bucket-1/some/prefix.v2'],
  ['s3://Bucket_1', 's3://Bucket_1'],
  ['file:///srv/fleet/', 'file:///srv/fleet'],
  ['file:///srv/with%20space', 'file:///srv/with%20space'],
])('%s is the URL of an object store', (url, normal) => {
  const { config, warnings } = load({
    env: fleet({ URL: url, ROLE: 'reader' }, keys().trusted),
  })
  expect(config.fleet.url).toBe(normal)
  expect(warnings).toEqual([])
})

test.each([
  ['http://bucket.example.com', /is not an s3:\/\/ or file/],
  ['s3:///prefix', /does not name a bucket/],
  ['s3://user:pass@bucket/x', /contains a user name or password/],
  ['s3://bucket/a/../b', /has a prefix with other characters/],
  ['s3://bucket/a//b', /has a prefix with other characters/],
  ['s3://bucket/a?x=1', /has a prefix with other characters/],
  ['file://host/share', /does not name a folder/],
  ['file:relative', /does not name a folder/],
  ['file:///', /does not name a folder/],
])('%s is refused as the URL of an object store', (url, why) => {
  expect(refusal(() => load({ env: fleet({ URL: url }, keys().signing) }))).toMatch(why)
})

test('a role without the keys that it needs is refused with what to do', () => {
  const { signing, trusted } = keys()
  const url = { URL: 's3://bucket' }
  expect(refusal(() => load({ env: fleet({ ...url, ROLE: 'reader' }, signing) }))).toMatch(
    /^[\s\S]*fleet\.url \(env .+a reader needs the public keys.+Give bundle\.trustedKeys/,
  )
  for (const ROLE of ['auto', 'writer', 'standby'])
    expect(refusal(() => load({ env: fleet({ ...url, ROLE }, trusted) }))).toMatch(
      new RegExp(`the role ${ROLE} publishes.+keygen.+bundle.signingKeys, or set fleet.role`),
    )
  expect(load({ env: fleet(url, signing) }).config.fleet.role).toBe('auto')
})

test('an inbox beside a fleet is refused', () => {
  const { signing, trusted } = keys()
  const inbox = { PATCHMIRROR_BUNDLE_INBOX: scratch() }
  const given = fleet({ URL: 's3://bucket' }, { ...signing, ...trusted, ...inbox })
  const message = refusal(() => load({ env: given }))
  expect(message).toMatch(/bundle\.inbox .+gets its data by fleet\.url .+one of the two to null/)
  const sole = fleet({ URL: 's3://bucket', ROLE: 'sole-writer' }, signing)
  expect(load({ env: sole }).config.fleet.soleWriter).toBe(true)
})

test('settings that have no effect in a fleet cause a warning', () => {
  const { signing, trusted } = keys()
  const warningsOf = (env: Record<string, string>) => load({ env }).warnings
  expect(warningsOf(fleet({ NAME: 'mirror-1@berlin' }))).toEqual([
    expect.stringMatching(/^fleet\.name \(env .+fleet\.url is not set, so there is no fleet/),
  ])
  const folder = fleet({ URL: 'file:///srv/fleet', ENDPOINT: 'https://s3.internal' }, signing)
  expect(warningsOf(folder)).toEqual([
    expect.stringMatching(/^fleet\.endpoint .+fleet\.url .+is a folder, which has no endpoint/),
  ])
  const upstream = {
    PATCHMIRROR_UPSTREAM_API_ROOT: 'https://service.test',
    PATCHMIRROR_UPSTREAM_TOKEN: 'abcdefgh',
  }
  expect(warningsOf(fleet({ URL: 's3://bucket', ROLE: 'reader' }, { ...trusted, ...upstream }))).toEqual([
    expect.stringMatching(/^upstream\.token .+is a reader .+never asks upstream.+Remove/),
  ])
})

test('the endpoint has the options of its store, and the name a place', () => {
  const { signing } = keys()
  const of = (more: Record<string, string>) =>
    load({ env: fleet({ URL: 's3://bucket', ...more }, signing) }).config.fleet
  expect(of({})).toMatchObject({ region: 'us-east-1', pathStyle: true, ownName: null, site: null, soleWriter: false })
  expect(of({ ENDPOINT: 'https://s3.internal:8333/?region=eu-1&pathStyle=false' })).toMatchObject({
    endpoint: 'https://s3.internal:8333?region=eu-1&pathStyle=false',
    region: 'eu-1',
    pathStyle: false,
  })
  expect(of({ NAME: 'mirror-1@berlin', ROLE: 'sole-writer' })).toMatchObject({
    ownName: 'mirror-1',
    site: 'berlin',
    soleWriter: true,
  })
})
