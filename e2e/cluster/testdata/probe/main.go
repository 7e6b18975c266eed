// SPDX-License-Identifier: Apache-2.0

// Command probe answers "hello", or with what the URL in the query "ask" answers.
// With an argument it prints that and ends.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Println(os.Args[1])
		return
	}
	log.Print("listening")
	log.Fatal(http.ListenAndServe(":8080", http.HandlerFunc(answer)))
}

func answer(w http.ResponseWriter, r *http.Request) {
	url := r.URL.Query().Get("ask")
	if url == "" {
		fmt.Fprintln(w, "hello")
		return
	}
	response, err := http.Get(url)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		log.Print(err)
	}
}
