import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createFailures } from '../../src/server/http/problems.ts'
import { createSbomPage } from '../../src/server/program/sbom.ts'
import { scratch } from '../config/loading.ts'
import { listen } from '../support/origin.ts'

async function serveSbom(file?: string): Promise<string> {
  const failures = createFailures('', null)
  const page = createSbomPage({ failures, ...(file !== undefined && { file }) })
  const server = createServer((request, response) => {
    if (!page.answer(request, response)) response.writeHead(418).end()
  })
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${await listen(server)}`
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
  expect((await fetch(`${url}/-/other`)).status).toBe(418)
})

test('a program that runs from its sources answers 404 with the reason', async () => {
  const answer = await fetch(`${await serveSbom()}/-/sbom`)
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining('npm run build')])
})
