import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { fileWith, loadYaml, refusal } from '../loading.ts'

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n'
const KEY = '-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n'

const load = (server: Record<string, unknown>) => loadYaml(JSON.stringify({ server }))

test('settings of the main listener that contradict each other are refused with both names', () => {
  const certFile = fileWith(CERTIFICATE, 'cert.pem')
  const keyFile = fileWith(KEY, 'key.pem')
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ certFile }, /server\.keyFile: not set, though server\.certFile \(file /],
    [{ keyFile }, /server\.certFile: not set, though server\.keyFile \(file /],
    [{ certFile, keyFile, socket: 'm.sock' }, /server\.certFile .*server\.socket .*has no TLS/],
    [{ trustProxy: ['unix'] }, /server\.trustProxy .*unix stands for .*server\.socket/],
    [{ socket: `/${'x'.repeat(103)}` }, /server\.socket .*longer than 103 bytes/],
    [{ socketMode: '0460' }, /server\.socketMode .*is not a mode/],
    [{ socketMode: 0o660 }, /server\.socketMode .*is not a mode/],
  ]
  for (const [server, fault] of cases) expect(refusal(() => load(server))).toMatch(fault)
})

test('a socket becomes absolute, its mode may be written with and without quotes', () => {
  const { server } = load({ socket: 'm.sock', socketMode: 660, trustProxy: ['unix'] }).config
  expect(server).toMatchObject({ socketMode: '0660', trustProxy: ['unix'] })
  expect(resolve(server.socket ?? '')).toBe(server.socket)
})
