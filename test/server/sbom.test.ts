import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createFailures } from '../../src/server/http/problems.ts'
import { createApp } from '../../src/server/app.ts'
import { sbomRoute } from '../../src/server/program/sbom.ts'
import { scratch } from '../config/loading.ts'
import { listen } from '../support/origin.ts'

async function serveSbom(file?: string): Promise<string> {
  const app = createApp({
    failures: createFailures('', null),
    createHttpServer: (routes) => createServer(routes),
    rewrite: (target) => target,
    joinSegments: () => undefined,
  })
  app.register(sbomRoute, file === undefined ? {} : { file })
  onTestFinished(() => app.close())
  await app.ready()
  return `http://127.0.0.1:${await listen(app.server)}`
}

test('the bill of materials is served as it was built, and revalidated by its tag', async () => {
  const file = join(scratch(), 'sbom.cdx.json')
  writeFileSync(file, '{"bomFormat":"CycloneDX"}\n')
  const url = await serveSbom(file)
  const answer = await fetch(`${url}/-/sbom`)
  expect(answer.headers.get('content-type')).toMatch(/^application\/vnd\.cyclonedx\+json/)
  expect(await answer.json()).toEqual({ bomFormat: 'CycloneDX' })
  const headers = { 'if-none-match': answer.headers.get('etag') ?? '' }
  expect((await fetch(`${url}/-/sbom`, { headers })).status).toBe(304)
  expect((await fetch(`${url}/-/sbom`, { method: 'DELETE' })).status).toBe(405)
  expect((await fetch(`${url}/-/other`)).status).toBe(404)
})

test('a program that runs from its sources answers 404 with the reason', async () => {
  const answer = await fetch(`${await serveSbom()}/-/sbom`)
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('npm run build')])
})
