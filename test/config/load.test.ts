import { join } from 'node:path'
import { expect, expectTypeOf, test } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import type { Config } from '../../src/config/schema.ts'
import { fileWith, load, loadYaml, refusal } from './loading.ts'

test('the Config type follows from the schema', () => {
  expectTypeOf<Config['upstream']['apiRoot']>().toEqualTypeOf<string | null>()
  expectTypeOf<Config['server']['port']>().toEqualTypeOf<number>()
  expectTypeOf<Config['log']['access']>().toEqualTypeOf<boolean>()
  expectTypeOf<Config['feeds']['extraPaths']>().toEqualTypeOf<readonly string[]>()
  expectTypeOf<Config['log']['format']>().toEqualTypeOf<'auto' | 'json' | 'pretty'>()
})

test('the file overrides the defaults and the environment both, and each origin is reported', () => {
  const file = fileWith('server:\n  listen: localhost:9000\n  keepAliveSeconds: 90\n')
  const { config, origins } = load({ file, env: { PATCHMIRROR_SERVER_LISTEN: 'localhost:9001' } })
  expect(config.server).toMatchObject({ host: 'localhost', port: 9001, keepAliveSeconds: 90, maxConnections: 4096 })
  expect(origins.get('server.listen')).toBe('env PATCHMIRROR_SERVER_LISTEN')
  expect(origins.get('server.keepAliveSeconds')).toBe(`file ${file}`)
  expect(origins.get('server.maxConnections')).toBe('default')
})

test('PATCHMIRROR_CONFIG names the file, and the argument wins over it', () => {
  const env = { PATCHMIRROR_CONFIG: fileWith('server: { listen: localhost:1111 }') }
  expect(load({ env }).config.server.port).toBe(1111)
  const file = fileWith('server: { listen: localhost:2222 }')
  expect(load({ env, file }).config.server.port).toBe(2222)
  expect(load({ env: { PATCHMIRROR_CONFIG: '' } }).config.server.port).toBe(8080)
})

test('relative paths count from the working directory', () => {
  const file = fileWith('data: { dir: state }', 'relative.yaml')
  const { config, origins } = load({ file: 'relative.yaml', cwd: join(file, '..') })
  expect(config.data.dir).toBe(join(file, '..', 'state'))
  expect(origins.get('data.dir')).toBe(`file ${file}`)
})

test('the configuration is frozen in all its depth', () => {
  const { config } = load()
  expect(Object.isFrozen(config)).toBe(true)
  expect(Object.values(config).every((section) => Object.isFrozen(section))).toBe(true)
  expect(Object.isFrozen(config.feeds.extraPaths)).toBe(true)
})

test('all problems of all sources come in one message, one a line', () => {
  const file = fileWith('server:\n  listn: 1\nsync:\n  maxAgeHours: 0\nwebhooks:\n  listen: 127.0.0.1:8080\n')
  const env = { PATCHMIRROR_LOG_LEVEL: 'loud', PATCHMIRROR_NONSENSE: '1' }
  const message = refusal(() => load({ file, env, requireUpstream: true }))
  expect(message.split('\n')).toHaveLength(7)
  expect(message).toContain('6 problems in the configuration:')
  expect(message).toContain(`server.listn (file ${file}, line 2): unknown key`)
  expect(message).toContain(
    `sync.maxAgeHours (file ${file}, line 4): 0 is too small. Allowed: a number from 0.01 to 87600; or a map of feeds, osv, catalog, identity; for example { osv: 26, catalog: 50 }.`,
  )
  expect(message).toContain('webhooks.listen: 127.0.0.1:8080 is server.listen')
  expect(message).toContain('log.level (env PATCHMIRROR_LOG_LEVEL): "loud" is not one of')
  expect(message).toContain('PATCHMIRROR_NONSENSE: unknown environment variable')
  expect(message).toContain('upstream.apiRoot: not set')
})

test('a single problem is reported in the singular, and the program exits with the code for configuration', () => {
  let thrown: unknown
  try {
    loadYaml('log: { level: loud }')
  } catch (error) {
    thrown = error
  }
  expect(String(thrown)).toContain('1 problem in the configuration:')
  expect(exitCode(thrown)).toBe(2)
})

test('a refused value is reported even where a later source overrides it', () => {
  const env = { PATCHMIRROR_SERVER_LISTEN: 'localhost:9000' }
  expect(refusal(() => loadYaml('server: { listen: localhost:99999 }', { env }))).toContain('has a port above 65535')
})

test('the upstream is required only of commands that ask for it', () => {
  expect(load().config.upstream.apiRoot).toBeNull()
  const message = refusal(() => load({ requireUpstream: true }))
  expect(message).toContain('upstream.apiRoot: not set')
  expect(message).toContain('PATCHMIRROR_UPSTREAM_API_ROOT=https://')
  const env = { PATCHMIRROR_UPSTREAM_API_ROOT: 'nonsense' }
  expect(refusal(() => load({ env, requireUpstream: true }))).not.toContain('not set')
})
