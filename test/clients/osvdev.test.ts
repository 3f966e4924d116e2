import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, closeAll } from '../server/served.ts'
import { runTool } from '../support/tools.ts'
import { serveFixes } from './mirror.ts'
import { type Built, buildProgram } from './toolbox.ts'

/* osv.dev's own Go client (`osvdev`, which osv-scanner uses online) against the mirror's query API. */

const VERSION = 'v0.0.0-20260805021707-3a57b89df3b6'

const SOURCE = `package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/ossf/osv-schema/bindings/go/osvschema"
	"osv.dev/bindings/go/api"
	"osv.dev/bindings/go/osvdev"
)

func purl(text string) *api.Query {
	return &api.Query{Package: &osvschema.Package{Purl: text}}
}

func main() {
	config := osvdev.DefaultConfig()
	client := &osvdev.OSVClient{HTTPClient: http.DefaultClient, Config: config, BaseHostURL: os.Args[1]}
	ctx := context.Background()
	one, err := client.Query(ctx, purl(os.Args[2]))
	if err != nil {
		fmt.Println("query failed:", err)
		os.Exit(1)
	}
	for _, vuln := range one.GetVulns() {
		fmt.Println("query", vuln.GetId())
	}
	queries := []*api.Query{}
	for _, text := range os.Args[2:] {
		queries = append(queries, purl(text))
	}
	batch, err := client.QueryBatch(ctx, queries)
	if err != nil {
		fmt.Println("batch failed:", err)
		os.Exit(1)
	}
	for i, result := range batch.GetResults() {
		for _, vuln := range result.GetVulns() {
			full, err := client.GetVulnByID(ctx, vuln.GetId())
			if err != nil {
				fmt.Println("get failed:", err)
				os.Exit(1)
			}
			fmt.Println("batch", i, full.GetId(), full.GetSummary())
		}
	}
	_, err = client.Query(ctx, &api.Query{Param: &api.Query_Commit{Commit: "6879efc2c1596d11a6a6ad296f80063b558d5e0f"}})
	fmt.Println("commit:", err)
}
`

let program: Built
let mirror: Served & { url: string }

beforeAll(async () => {
  mirror = await serveFixes()
  const modules = { 'osv.dev/bindings/go': VERSION }
  program = await buildProgram({ name: 'osvdev-client', modules, source: SOURCE })
})

afterAll(closeAll)

test('osvdev (Go) queries by purl, one and many, and gets the records', async (context) => {
  if ('missing' in program) return context.skip(`osv.dev/bindings/go: ${program.missing}`)
  const purls = [
    'pkg:npm/%40rootio/semver@4.2.1-root.io.1',
    'pkg:npm/%40rootio/semver@4.2.1-root.io.2',
    'pkg:deb/debian/rootio-curl@7.88.1-10?distro=debian-12',
  ]
  const { code, out } = await runTool(program.path, [`${mirror.url}/osv`, ...purls])
  const lines = out.trim().split('\n')
  const refusal = lines.pop()
  expect([code, lines]).toEqual([
    0,
    [
      'query ROOT-APP-NPM-CVE-2024-1001',
      'batch 0 ROOT-APP-NPM-CVE-2024-1001 @rootio/semver is to be fixed',
      'batch 2 ROOT-OS-DEBIAN-12-CVE-2024-1004 rootio-curl is to be fixed',
    ],
  ])
  expect(refusal).toMatch(/^commit: .*400.*by commit are not supported/)
})
