import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, closeAll } from '../server/served.ts'
import { runTool } from '../support/tools.ts'
import { CVE_FEED, serveFixes } from './mirror.ts'
import { type Built, buildProgram } from './toolbox.ts'

/*
 * vuln-list-update, the first step of Trivy's pipeline: its readers of OSV and of Root's feed. It has no releases, so
 * its newest state is taken where the module can be had at all. It downloads by go-getter, which is run by itself too.
 */

const GETTER = 'v1.8.10'

const GETTER_SOURCE = `package main

import (
	"context"
	"fmt"
	"os"

	getter "github.com/hashicorp/go-getter"
)

func main() {
	pwd, _ := os.Getwd()
	client := &getter.Client{Ctx: context.Background(), Src: os.Args[1], Dst: os.Args[2], Pwd: pwd, Mode: getter.ClientModeDir}
	if err := client.Get(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`

const READERS_SOURCE = `package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/aquasecurity/vuln-list-update/osv"
	"github.com/aquasecurity/vuln-list-update/rootio"
)

func main() {
	base, _ := url.Parse(os.Args[1])
	database := osv.NewOsv(osv.WithURL(os.Args[1]+"/osv/%s/all.zip"), osv.WithDir(filepath.Join(os.Args[2], "osv")),
		osv.WithEcosystem(map[string]string{"PyPI": "python", "npm": "node"}))
	if err := database.Update(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := rootio.NewUpdater(rootio.WithBaseURL(base), rootio.WithVulnListDir(os.Args[2])).Update(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-vulnlist-'))
let mirror: Awaited<ReturnType<typeof serveFixes>>
let getter: Built
let readers: Built

beforeAll(async () => {
  mirror = await serveFixes()
  getter = await buildProgram({
    name: 'go-getter',
    modules: { 'github.com/hashicorp/go-getter': GETTER },
    source: GETTER_SOURCE,
  })
  readers = await buildProgram({
    name: 'vuln-list-readers',
    modules: { 'github.com/aquasecurity/vuln-list-update': 'latest' },
    source: READERS_SOURCE,
  })
})

afterAll(async () => {
  await closeAll()
  rmSync(dir, { recursive: true, force: true })
})

test('go-getter downloads and unpacks the archives, of all and of one ecosystem', async (context) => {
  if ('missing' in getter) return context.skip(`go-getter ${GETTER}: ${getter.missing}`)
  const { path: command } = getter
  const get = async (path: string, folder: string): Promise<string[]> => {
    const into = join(dir, folder)
    const url = mirror.url + path
    expect(await runTool(command, [url, into])).toMatchObject({ code: 0, out: '' })
    return readdirSync(into).sort()
  }
  const all = [...mirror.records.keys()].map((id) => `${id}.json`).sort()
  expect(await get('/external/osv/all.zip', 'external')).toEqual(all)
  for (const [id, text] of mirror.records) expect(readFileSync(join(dir, 'external', `${id}.json`), 'utf8')).toBe(text)
  expect(await get('/osv/PyPI/all.zip', 'pypi')).toEqual(['ROOT-APP-PYPI-CVE-2024-1002.json'])
  expect(methodsOf(mirror)).toEqual(['HEAD 200', 'GET 200', 'HEAD 200', 'GET 200'])
})

test("vuln-list-update's readers of OSV and of Root's feed", async (context) => {
  if ('missing' in readers) return context.skip(`vuln-list-update: ${readers.missing}`)
  const { code, out } = await runTool(readers.path, [mirror.url, dir])
  expect([code, out]).toEqual([0, ''])
  const osv = join(dir, 'osv/python/rootio-flask/ROOT-APP-PYPI-CVE-2024-1002.json')
  expect(existsSync(osv)).toBe(true)
  expect(existsSync(join(dir, 'rootio/cve_feed.json'))).toBe(true)
  expect(readFileSync(join(dir, 'rootio/cve_feed.json'), 'utf8')).toContain(
    Object.keys(JSON.parse(CVE_FEED) as object)[0],
  )
})

function methodsOf({ requests }: Served): string[] {
  const lines = requests.splice(0) as { method: string; statusCode: number }[]
  return lines.map(({ method, statusCode }) => `${method} ${statusCode}`)
}
